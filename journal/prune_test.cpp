// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "journal/directory.hpp"
#include "journal/inspect.hpp"
#include "journal/testing/journal_run.hpp"
#include "journal/testing/memory_disk.hpp"

namespace lockstep {
namespace {

const std::string directory = "data";

std::vector<std::uint64_t> segments_of(MemoryDisk& disk) {
  return list_journal(disk, directory)->segments;
}

/// What the batch `previous` and `newest` ended with, as a snapshot writer would say.
SnapshotMark snapshots_at(const std::vector<BatchHeader>& history, std::uint64_t newest, std::uint64_t previous) {
  SnapshotMark mark;
  mark.index = newest;
  mark.chain = history[newest - 1].chain;
  mark.previous_index = previous;
  return mark;
}

/// A live journal of 60 batches over several segments.
struct Live {
  Live() {
    auto started = JournalRun::start(disk, directory, history);
    REQUIRE_MESSAGE(started, started.error().message);
    run = std::move(*started);
    for (int i = 0; i < 60; ++i) REQUIRE(run->append_random());
    REQUIRE(run->settle());
  }
  void poll_for_a_while() {
    for (int i = 0; i < 20; ++i) run->poll();
  }
  void keep_snapshots(std::uint64_t newest, std::uint64_t previous) {
    run->writer().store_snapshots(snapshots_at(history, newest, previous));
    poll_for_a_while();
    REQUIRE(run->writer().hard_state().snapshot_index == newest);
  }
  /// The number of batches from `from` on that are bit for bit those appended.
  [[nodiscard]] std::uint64_t read_from(std::uint64_t from) {
    auto reader = JournalReader::open(disk, directory, from);
    REQUIRE_MESSAGE(reader, reader.error().message);
    for (std::uint64_t count = 0;; ++count) {
      const auto batch = reader->next();
      REQUIRE_MESSAGE(batch, batch.error().message);
      if (!*batch) return count;
      REQUIRE(std::memcmp((*batch)->header, &history[reader->position().index - 1], sizeof(BatchHeader)) == 0);
    }
  }
  void restart(std::uint64_t seed) {
    run.reset();
    auto started = JournalRun::start(disk, directory, history, seed);
    REQUIRE_MESSAGE(started, started.error().message);
    run = std::move(*started);
  }

  MemoryDisk disk;
  std::vector<BatchHeader> history;
  std::unique_ptr<JournalRun> run;
};

TEST_CASE("pruning removes whole segments below a batch, and the rest goes on as before") {
  Live live;
  const std::size_t before = segments_of(live.disk).size();
  live.keep_snapshots(55, 45);
  live.run->writer().prune(40);
  live.poll_for_a_while();
  const std::uint64_t first = live.run->writer().first_index();
  CHECK((first > 1 && first <= 40));
  CHECK(segments_of(live.disk).size() < before);
  CHECK(segments_of(live.disk).front() == live.run->writer().hard_state().oldest_segment_id);

  for (int i = 0; i < 10; ++i) REQUIRE(live.run->append_random());
  REQUIRE(live.run->settle());
  CHECK(live.read_from(first) == 70 - first + 1);
  CHECK(live.read_from(0) == 70 - first + 1);
  CHECK(live.read_from(50) == 21);
  const auto info = inspect_journal(live.disk, directory, InspectDepth::records);
  REQUIRE(info);
  CHECK(info->sound());
  CHECK(info->first_index == first);
  CHECK(info->last.index == 70);

  live.restart(2);
  CHECK(live.run->writer().first_index() == first);
  CHECK(live.run->writer().hard_state().snapshot_index == 55);
  REQUIRE(live.run->append_random());
  REQUIRE(live.run->settle());
  CHECK(live.read_from(0) == 71 - first + 1);
}

TEST_CASE("a reader of a pruned journal knows the chain before its first batch, and is refused what is gone") {
  Live live;
  live.keep_snapshots(50, 45);
  live.run->writer().prune(45);
  live.poll_for_a_while();
  const std::uint64_t first = live.run->writer().first_index();
  for (std::uint64_t from = first; from <= 61; ++from) {
    const auto reader = JournalReader::open(live.disk, directory, from);
    REQUIRE_MESSAGE(reader, reader.error().message);
    CHECK(reader->position().index == from - 1);
    CHECK(reader->position().chain == live.history[from - 2].chain);
  }
  const auto refused = JournalReader::open(live.disk, directory, first - 1);
  REQUIRE_FALSE(refused);
  CHECK(refused.error().code == ErrorCode::incomplete);
  CHECK(refused.error().message.find("begins at batch " + std::to_string(first)) != std::string::npos);
}

TEST_CASE("pruning never goes beyond the previous snapshot, nor takes the segment with the last durable batch") {
  Live live;
  live.run->writer().prune(UINT64_MAX);
  live.poll_for_a_while();
  CHECK(live.run->writer().first_index() == 1);

  live.keep_snapshots(60, 30);
  live.run->writer().prune(UINT64_MAX);
  live.poll_for_a_while();
  CHECK(live.run->writer().first_index() <= 31);
  CHECK(live.read_from(31) == 30);

  live.keep_snapshots(60, 60);
  live.run->writer().prune(UINT64_MAX);
  live.poll_for_a_while();
  CHECK(live.run->writer().first_index() <= 60);
  CHECK(live.read_from(60) == 1);
  for (std::uint64_t life = 2; life < 5; ++life) live.restart(life);
  CHECK(live.read_from(60) == 1);
}

TEST_CASE("a snapshot is named only when the journal is durable up to its batch") {
  Live live;
  REQUIRE(live.run->append_random());
  live.run->writer().store_snapshots(snapshots_at(live.history, 61, 50));
  live.run->poll();
  CHECK(live.run->writer().hard_state().snapshot_index == 0);
  live.poll_for_a_while();
  CHECK(live.run->writer().hard_state().snapshot_index == 61);
  CHECK(look_at_hard_state(live.disk, directory)->snapshot_chain == live.history[60].chain);
}

TEST_CASE("T50: a power cut at any step of naming a snapshot and pruning leaves a journal that starts and reads on") {
  int cuts = 0;
  for (std::uint64_t step = 1;; ++step) {
    Live live;
    const std::uint64_t before = live.disk.operations();
    live.disk.fail_at(step, MemoryDisk::Fault::power_cut, EIO);
    live.run->writer().store_snapshots(snapshots_at(live.history, 55, 45));
    live.run->writer().prune(45);
    live.poll_for_a_while();
    const bool done = !live.run->writer().failure();
    for (std::uint64_t seed = 1; seed <= 8; ++seed) {
      MemoryDisk cut = live.disk.after_power_cut(seed);
      std::vector<BatchHeader> history = live.history;
      auto after = JournalRun::start(cut, directory, history, 7);
      REQUIRE_MESSAGE(after, after.error().message);
      CHECK((*after)->writer().appended_index() == 60);
      const std::uint64_t first = (*after)->writer().first_index();
      CHECK(first <= 46);
      CHECK(list_journal(cut, directory)->segments.front() == (*after)->writer().hard_state().oldest_segment_id);
      REQUIRE((*after)->append_random());
      REQUIRE((*after)->settle());
      auto reader = JournalReader::open(cut, directory, 46);
      REQUIRE_MESSAGE(reader, reader.error().message);
      for (std::uint64_t index = 46; index <= 61; ++index) {
        const auto batch = reader->next();
        REQUIRE_MESSAGE(batch, batch.error().message);
        REQUIRE(std::memcmp((*batch)->header, &history[index - 1], sizeof(BatchHeader)) == 0);
      }
    }
    ++cuts;
    if (done && live.disk.operations() - before < step) break;
  }
  CHECK(cuts > 8);
}

TEST_CASE("the oldest segment of a pruned journal, damaged in its first block, is never taken for a torn tail") {
  Live live;
  live.keep_snapshots(60, 60);
  live.run->writer().prune(60);
  live.poll_for_a_while();
  live.run.reset();
  const std::string path = directory + "/" + segment_name(segments_of(live.disk).front());
  const std::vector<std::byte> zeros(live.disk.bytes(path).size() - sizeof(SegmentHeader));
  live.disk.overwrite(path, sizeof(SegmentHeader), zeros);
  const auto refused = recover(live.disk, {.directory = directory});
  REQUIRE_FALSE(refused);
  CHECK(refused.error().code == ErrorCode::corrupt);
  auto reader = JournalReader::open(live.disk, directory, 60);
  if (reader) CHECK_FALSE(reader->next());
}

TEST_CASE("a log that ends before the newest snapshot, or has another chain there, is refused and never cut") {
  Live live;
  live.run->writer().store_snapshots(snapshots_at(live.history, 58, 45));
  live.poll_for_a_while();
  const SnapshotMark sound = snapshots_at(live.history, 58, 45);
  live.run.reset();
  SUBCASE("the tail is gone without a trace") {
    const auto all = segments_of(live.disk);
    for (const std::uint64_t id : all) {
      const std::string name = directory + "/" + segment_name(id);
      if (id + 3 >= all.back())
        live.disk.overwrite(name, sizeof(SegmentHeader),
                            std::vector<std::byte>(live.disk.bytes(name).size() - sizeof(SegmentHeader)));
    }
  }
  SUBCASE("the snapshot is of another history") {
    auto file = HardStateFile::open(live.disk, directory);
    REQUIRE(file);
    HardState state = file->value();
    state.snapshot_chain = xxh3_128(object_bytes(sound.chain));
    REQUIRE(file->store(state));
  }
  const auto refused = recover(live.disk, {.directory = directory});
  REQUIRE_FALSE(refused);
  CHECK(refused.error().code == ErrorCode::corrupt);
  const auto info = inspect_journal(live.disk, directory, InspectDepth::blocks);
  REQUIRE(info);
  CHECK_FALSE(info->sound());
}

TEST_CASE("a history that begins behind the newest snapshot is refused") {
  Live live;
  live.keep_snapshots(55, 45);
  live.run->writer().prune(45);
  live.poll_for_a_while();
  live.run.reset();
  {
    auto file = HardStateFile::open(live.disk, directory);
    REQUIRE(file);
    HardState state = file->value();
    state.snapshot_index = 5;
    REQUIRE(file->store(state));
  }
  const auto refused = recover(live.disk, {.directory = directory});
  REQUIRE_FALSE(refused);
  CHECK(refused.error().code == ErrorCode::corrupt);
  CHECK(refused.error().message.find("the newest snapshot is of batch 5") != std::string::npos);
}

}  // namespace
}  // namespace lockstep
