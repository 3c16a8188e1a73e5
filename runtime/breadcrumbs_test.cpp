// SPDX-License-Identifier: Apache-2.0
#include "runtime/breadcrumbs.hpp"

#include <doctest/doctest.h>

#include "journal/posix_disk.hpp"
#include "journal/testing/scratch_directory.hpp"

namespace lockstep {
namespace {

/// A process that dies while executor `executor` executes `seq`: its breadcrumbs are simply left as they are.
void die_at(const ScratchDirectory& scratch, std::uint32_t executor, std::uint64_t seq) {
  PosixDisk disk;
  auto breadcrumbs = Breadcrumbs::open(disk, scratch.path());
  REQUIRE(breadcrumbs);
  breadcrumbs->slots()[executor].enter(seq);
}

std::optional<Breadcrumbs::Deaths> poison_after(const ScratchDirectory& scratch) {
  PosixDisk disk;
  auto breadcrumbs = Breadcrumbs::open(disk, scratch.path());
  REQUIRE(breadcrumbs);
  return breadcrumbs->poison();
}

}  // namespace

TEST_CASE("the second death at one sequence number makes it poison, on whichever executor") {
  const ScratchDirectory scratch;
  die_at(scratch, 0, 42);
  CHECK_FALSE(poison_after(scratch));
  die_at(scratch, 3, 42);
  const auto poison = poison_after(scratch);
  REQUIRE(poison);
  CHECK(poison->seq == 42);
  CHECK(poison->count == 2);
  CHECK(poison_after(scratch)->count == 2);  // looking does not count
}

TEST_CASE("a poison that is skipped gives way to the next") {
  const ScratchDirectory scratch;
  for (const std::uint64_t seq : {7U, 9U, 9U, 7U}) die_at(scratch, 0, seq);
  PosixDisk disk;
  auto breadcrumbs = Breadcrumbs::open(disk, scratch.path());
  REQUIRE(breadcrumbs);
  CHECK(breadcrumbs->poison()->seq == 7);
  const std::uint64_t skipped[] = {3, 7};
  REQUIRE(breadcrumbs->poison(skipped));
  CHECK(breadcrumbs->poison(skipped)->seq == 9);
  const std::uint64_t both[] = {7, 9};
  CHECK_FALSE(breadcrumbs->poison(both));
}

TEST_CASE("looking sees the deaths that an open counts, and leaves the file as it is") {
  const ScratchDirectory scratch;
  PosixDisk disk;
  CHECK_FALSE(Breadcrumbs::look(disk, scratch.path())->poison());
  die_at(scratch, 0, 42);
  die_at(scratch, 1, 42);
  for (int i = 0; i < 3; ++i) CHECK(Breadcrumbs::look(disk, scratch.path())->poison()->count == 2);
  CHECK(poison_after(scratch)->count == 2);
  CHECK_FALSE(Breadcrumbs::look(disk, scratch.path() + "/nowhere"));
}

TEST_CASE("a process that ends between handlers leaves nothing") {
  const ScratchDirectory scratch;
  for (int start = 0; start < 3; ++start) {
    PosixDisk disk;
    auto breadcrumbs = Breadcrumbs::open(disk, scratch.path());
    REQUIRE(breadcrumbs);
    breadcrumbs->slots()[0].enter(7);
    breadcrumbs->slots()[0].leave();
  }
  CHECK_FALSE(poison_after(scratch));
}

TEST_CASE("deaths at different sequence numbers do not add up, and the lowest poison comes first") {
  const ScratchDirectory scratch;
  for (std::uint64_t seq = 1; seq <= 20; ++seq) die_at(scratch, 0, seq);
  CHECK_FALSE(poison_after(scratch));
  for (int i = 0; i < 2; ++i) {
    PosixDisk disk;
    auto breadcrumbs = Breadcrumbs::open(disk, scratch.path());
    REQUIRE(breadcrumbs);
    breadcrumbs->slots()[0].enter(90);
    breadcrumbs->slots()[1].enter(80);
  }
  REQUIRE(poison_after(scratch));
  CHECK(poison_after(scratch)->seq == 80);
}

TEST_CASE("what was executed past is forgotten") {
  const ScratchDirectory scratch;
  die_at(scratch, 0, 5);
  {
    PosixDisk disk;
    auto breadcrumbs = Breadcrumbs::open(disk, scratch.path());
    REQUIRE(breadcrumbs);
    breadcrumbs->forget();
  }
  die_at(scratch, 0, 5);
  CHECK_FALSE(poison_after(scratch));
}

TEST_CASE("a file that makes no sense starts anew") {
  const ScratchDirectory scratch;
  die_at(scratch, 0, 5);
  die_at(scratch, 0, 5);
  {
    PosixDisk disk;
    const auto memory = disk.map_shared(scratch.file(Breadcrumbs::file_name), 8320);
    REQUIRE(memory);
    (*memory)[3] ^= std::byte{1};
  }
  CHECK_FALSE(poison_after(scratch));
}

}  // namespace lockstep
