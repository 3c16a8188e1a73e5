// SPDX-License-Identifier: Apache-2.0
#include "journal/snapshot_restore.hpp"

#include <doctest/doctest.h>

#include "journal/retention.hpp"
#include "journal/snapshots.hpp"
#include "journal/testing/example_snapshot.hpp"
#include "journal/testing/journal_run.hpp"
#include "journal/testing/memory_disk.hpp"

namespace lockstep {
namespace {

const std::string source = "source";
const std::string target = "target";

/// A journal of some segments, with a snapshot of one of its batches.
struct Source {
  explicit Source(std::uint64_t snapshot) : index(snapshot) {
    auto run = JournalRun::start(disk, source, history, 7);
    REQUIRE(run);
    for (int i = 0; i < 60; ++i) REQUIRE((*run)->append_random());
    REQUIRE((*run)->writer().close());
    const ExampleSnapshot example(position_after(history[index - 1]), (*run)->writer().hard_state().cluster_id,
                                  {{600}, {528, 9000}});
    REQUIRE(example.write(disk, source));
  }
  [[nodiscard]] SnapshotRestore order(bool with_journal) const {
    SnapshotRestore restore{source + "/" + snapshot_name(index), target, std::nullopt};
    if (with_journal) restore.journal = source;
    return restore;
  }

  std::uint64_t index;
  MemoryDisk disk;
  std::vector<BatchHeader> history;
};

/// A process on the restored directory goes on behind `expected`.
void check_goes_on(MemoryDisk& disk, const std::vector<BatchHeader>& history, std::uint64_t last, std::uint64_t index) {
  for (int start = 0; start < 2; ++start) {
    auto choice = choose_snapshot(disk, target);
    REQUIRE_MESSAGE(choice, choice.error().message);
    REQUIRE(choice->snapshot);
    CHECK(choice->snapshot->header().index == index);
    auto recovered = recover(disk, {.directory = target, .seed = 3});
    REQUIRE_MESSAGE(recovered, recovered.error().message);
    CHECK(recovered->position == position_after(history[last - 1]));
  }
  std::vector<BatchHeader> after(history.begin(), history.begin() + static_cast<std::ptrdiff_t>(last));
  auto run = JournalRun::start(disk, target, after, 8);
  REQUIRE_MESSAGE(run, run.error().message);
  for (int i = 0; i < 5; ++i) REQUIRE((*run)->append_random());
  REQUIRE((*run)->writer().close());
  run->reset();
  auto reader = JournalReader::open(disk, target, index + 1);
  REQUIRE_MESSAGE(reader, reader.error().message);
  std::uint64_t read = index;
  for (auto batch = reader->next(); batch && *batch; batch = reader->next()) {
    CHECK((*batch)->header->chain == after[read].chain);
    ++read;
  }
  CHECK(read == last + 5);
}

TEST_CASE("a directory restored from a snapshot alone goes on behind it") {
  Source from(20);
  REQUIRE(restore_directory(from.disk, from.order(false)));
  check_goes_on(from.disk, from.history, 20, 20);
}

TEST_CASE("a directory restored with a journal goes on behind that") {
  for (const std::uint64_t index : {1U, 20U, 59U, 60U}) {
    CAPTURE(index);
    Source from(index);
    REQUIRE(restore_directory(from.disk, from.order(true)));
    check_goes_on(from.disk, from.history, 60, index);
  }
}

TEST_CASE("nothing is restored over something, out of damage, or with another history's journal") {
  Source from(20);
  REQUIRE(from.disk.make_directory(target));
  from.disk.put(target + "/x", {});
  CHECK(restore_directory(from.disk, from.order(false)).error().code == ErrorCode::usage);
  REQUIRE(from.disk.remove(target + "/x"));

  Source other(30);
  other.disk.put(source + "/" + snapshot_name(20), {});
  CHECK(restore_directory(other.disk, {source + "/" + snapshot_name(20), target, std::nullopt}).error().code ==
        ErrorCode::corrupt);
  const ExampleSnapshot foreign(position_after(other.history[29]), {1, 2}, {{600}});
  REQUIRE(other.disk.make_directory("foreign"));
  REQUIRE(foreign.write(other.disk, "foreign"));
  CHECK(restore_directory(other.disk, {"foreign/" + snapshot_name(30), target, source}).error().code ==
        ErrorCode::incompatible);
}

TEST_CASE("a power cut at any operation of a restore leaves a directory that is whole or refused") {
  std::size_t whole = 0;
  std::size_t refused = 0;
  Source counted(20);
  const std::uint64_t before = counted.disk.operations();
  REQUIRE(restore_directory(counted.disk, counted.order(false)));
  const std::uint64_t operations = counted.disk.operations() - before;
  for (std::uint64_t at = 1; at <= operations; ++at) {
    CAPTURE(at);
    Source from(20);
    from.disk.fail_at(at, MemoryDisk::Fault::power_cut, EIO);
    const bool done = restore_directory(from.disk, from.order(false)).has_value();
    MemoryDisk after = from.disk.after_power_cut(at);
    auto recovered = recover(after, {.directory = target, .create = false, .seed = 3});
    CHECK((recovered || !done));
    if (recovered) CHECK(recovered->position.index == 20);
    ++(recovered ? whole : refused);
  }
  CHECK(whole > 0);
  CHECK(refused > 0);
}

TEST_CASE("as much of a journal is kept as its owner wants, in whole segments") {
  Source from(20);
  const auto keep = [&](const Retention& retention) {
    const auto first = first_batch_to_keep(from.disk, source, retention, from.history.back().last_time_ns);
    REQUIRE(first);
    return *first;
  };
  CHECK(keep({.max_bytes = UINT64_MAX, .max_age_ns = 0}) == 0);
  const std::uint64_t least = keep({.max_bytes = 0, .max_age_ns = 0});
  CHECK(least > 1);
  CHECK(least <= 60);
  const std::uint64_t more = keep({.max_bytes = 2 * min_segment_bytes, .max_age_ns = 0});
  CHECK(more < least);
  CHECK(keep({.max_bytes = UINT64_MAX, .max_age_ns = 1}) == least);
}

}  // namespace
}  // namespace lockstep
