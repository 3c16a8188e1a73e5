// SPDX-License-Identifier: Apache-2.0
#include "journal/posix_disk.hpp"

#include <doctest/doctest.h>

#include <array>
#include <cerrno>
#include <cstring>

#include "journal/aligned_buffer.hpp"
#include "journal/testing/scratch_directory.hpp"

namespace lockstep {

TEST_CASE("submitted pieces land one behind the other and complete at the next poll") {
  const ScratchDirectory scratch;
  PosixDisk disk;
  const auto file = disk.open(scratch.file("data"), OpenMode::create_direct);
  REQUIRE(file);
  REQUIRE(disk.zero_fill(*file, 4 * disk_block_bytes));
  AlignedBuffer first(disk_block_bytes), second(disk_block_bytes);
  std::memset(first.data(), 1, first.size());
  std::memset(second.data(), 2, second.size());
  const std::array<iovec, 2> pieces{iovec{first.data(), first.size()}, iovec{second.data(), second.size()}};
  disk.submit_write(*file, disk_block_bytes, pieces, 7);
  disk.submit_sync(*file, 8);
  const auto done = disk.poll();
  REQUIRE(done.size() == 2);
  CHECK((done[0].token == 7 && done[0].result == 8192));
  CHECK((done[1].token == 8 && done[1].result == 0));
  CHECK(disk.poll().empty());

  AlignedBuffer back(4 * disk_block_bytes);
  CHECK(disk.read(*file, 0, back.span()).value() == 4 * disk_block_bytes);
  CHECK(back.span()[4095] == std::byte{0});
  CHECK(back.span()[4096] == std::byte{1});
  CHECK(back.span()[8192] == std::byte{2});
  CHECK(back.span()[12288] == std::byte{0});
  CHECK(disk.size(*file).value() == 4 * disk_block_bytes);
  CHECK(disk.read(*file, 3 * disk_block_bytes, back.span()).value() == disk_block_bytes);
}

TEST_CASE("an error names operation, file and errno") {
  const ScratchDirectory scratch;
  PosixDisk disk;
  const auto missing = disk.open(scratch.file("missing"), OpenMode::read);
  REQUIRE_FALSE(missing);
  CHECK(missing.error().code == ErrorCode::io);
  CHECK(missing.error().message == "open " + scratch.file("missing") + ": ENOENT (No such file or directory)");
  REQUIRE(disk.open(scratch.file("new"), OpenMode::create_direct));
  CHECK_FALSE(disk.open(scratch.file("new"), OpenMode::create_direct));
}

TEST_CASE("a directory is locked once, even within one process") {
  const ScratchDirectory scratch;
  PosixDisk disk;
  const auto holder = disk.open_directory(scratch.path());
  const auto other = disk.open_directory(scratch.path());
  REQUIRE(disk.lock(*holder));
  const auto refused = disk.lock(*other);
  REQUIRE_FALSE(refused);
  CHECK(refused.error().code == ErrorCode::busy);
  disk.close(*holder);
  CHECK(disk.lock(*other));
}

TEST_CASE("background work runs with the disk and reports what it failed with") {
  const ScratchDirectory scratch;
  PosixDisk disk;
  disk.submit_background([&](Disk& within) { return within.make_directory(scratch.file("a/b")); }, 1);
  disk.submit_background([](Disk&) -> Result<void> { return fail(ErrorCode::full, "no space"); }, 2);
  const auto done = disk.poll();
  REQUIRE(done.size() == 2);
  CHECK(done[0].result == 0);
  CHECK(done[1].result == -ENOSPC);
  CHECK(disk.list(scratch.path()).value() == std::vector<std::string>{"a"});
}

}  // namespace lockstep
