// SPDX-License-Identifier: Apache-2.0
#include "journal/skips.hpp"

#include <doctest/doctest.h>

#include "journal/hash_log.hpp"
#include "journal/inspect.hpp"
#include "journal/reader.hpp"
#include "journal/slice.hpp"
#include "journal/testing/journal_run.hpp"
#include "journal/testing/memory_disk.hpp"

namespace lockstep {
namespace {

/// A journal of batches of two records each: seqs 1 to 20.
std::vector<BatchHeader> write_ten_batches(MemoryDisk& disk) {
  std::vector<BatchHeader> history;
  auto run = JournalRun::start(disk, "/j", history, 3);
  REQUIRE(run);
  for (int i = 0; i < 10; ++i) REQUIRE((*run)->append((*run)->maker().make({10, 2000})));
  REQUIRE((*run)->settle());
  REQUIRE((*run)->writer().close());
  run->reset();
  const HardState identity = look_at_hard_state(disk, "/j").value();
  REQUIRE(HashLog::open(disk, "/j", identity.cluster_id, identity.replica_id, history.size()));
  return history;
}

}  // namespace

TEST_CASE("a skip is a record behind all others, and is found again") {
  MemoryDisk disk;
  const auto history = write_ten_batches(disk);
  CHECK(read_skips(disk, "/j").value().empty());
  const auto seq = append_skip(disk, "/j", 17, 17, history.back().last_time_ns + 5, small_journal);
  REQUIRE_MESSAGE(seq, seq.error().message);
  CHECK(*seq == 21);
  CHECK(append_skip(disk, "/j", 4, 4, 0, small_journal).value() ==
        22);  // an earlier clock: stamped time does not run back
  CHECK(read_skips(disk, "/j").value() == std::vector<std::uint64_t>{4, 17});

  auto reader = JournalReader::open(disk, "/j", 12);
  REQUIRE(reader);
  const auto last = reader->next();
  REQUIRE(last);
  REQUIRE(*last);
  CHECK_FALSE(batch_defect(**last));
  CHECK((*last)->header->last_time_ns == history.back().last_time_ns + 5);
}

TEST_CASE("a hard state from before the first skip is named, and the next start mends it") {
  MemoryDisk disk;
  const auto history = write_ten_batches(disk);
  const auto bytes = disk.bytes("/j/hardstate");
  const std::vector<std::byte> older(bytes.begin(), bytes.end());
  REQUIRE(append_skip(disk, "/j", 17, 17, 0, small_journal));
  CHECK(inspect_journal(disk, "/j", InspectDepth::blocks)->findings.empty());
  disk.put("/j/hardstate", older);
  CHECK(read_skips(disk, "/j").value().empty());
  CHECK(read_skips(disk, "/j", true).value() == std::vector<std::uint64_t>{17});
  REQUIRE(cut_slice(disk, {.from = "/j", .to = "/slice", .first_seq = 1}));
  CHECK(read_skips(disk, "/slice").value() == std::vector<std::uint64_t>{17});
  const auto info = inspect_journal(disk, "/j", InspectDepth::blocks);
  REQUIRE(info);
  REQUIRE(info->findings.size() == 1);
  CHECK(info->findings[0].file == "/j/hardstate");
  CHECK(info->sound());
  REQUIRE(recover(disk, {.directory = "/j"}));
  CHECK(read_skips(disk, "/j").value() == std::vector<std::uint64_t>{17});
  CHECK(inspect_journal(disk, "/j", InspectDepth::blocks)->findings.empty());
}

TEST_CASE("what the journal does not hold, or holds a skip of, cannot be skipped") {
  MemoryDisk disk;
  write_ten_batches(disk);
  const MemoryDisk before = disk.copy();
  for (const std::uint64_t seq : {0U, 21U, 1000U}) {
    const auto refused = append_skip(disk, "/j", seq, seq, 0, small_journal);
    REQUIRE_FALSE(refused);
    CHECK(refused.error().message.find("holds no seq") != std::string::npos);
  }
  CHECK(disk.has_files_of(before));
  REQUIRE(append_skip(disk, "/j", 9, 9, 0, small_journal));
  CHECK(append_skip(disk, "/j", 9, 9, 0, small_journal).error().message.find("skipped already") != std::string::npos);
  CHECK_FALSE(append_skip(disk, "/nowhere", 9, 9, 0, small_journal));
}

TEST_CASE("what the program does not die of cannot be skipped") {
  MemoryDisk disk;
  write_ten_batches(disk);
  const auto nothing_deadly = append_skip(disk, "/j", 9, std::nullopt, 0, small_journal);
  REQUIRE_FALSE(nothing_deadly);
  CHECK(nothing_deadly.error().code == ErrorCode::usage);
  const auto another = append_skip(disk, "/j", 9, 11, 0, small_journal);
  REQUIRE_FALSE(another);
  CHECK(another.error().message.find("it died twice of seq 11") != std::string::npos);
  CHECK(read_skips(disk, "/j")->empty());
}

TEST_CASE("what was executed past cannot be skipped") {
  MemoryDisk disk;
  const auto history = write_ten_batches(disk);
  {
    const auto identity = look_at_hard_state(disk, "/j").value();
    auto log = HashLog::open(disk, "/j", identity.cluster_id, identity.replica_id, 10);
    REQUIRE(log);
    HashEntry entry;
    entry.index = 6;
    entry.last_seq = 12;
    REQUIRE(log->append(entry));
  }
  CHECK(append_skip(disk, "/j", 12, 12, 0, small_journal).error().message.find("was executed") != std::string::npos);
  CHECK(append_skip(disk, "/j", 13, 13, 0, small_journal));
}

TEST_CASE("where there is no hash log nothing can be skipped, until a start has made one") {
  MemoryDisk disk;
  write_ten_batches(disk);
  REQUIRE(disk.remove("/j/hashlog"));
  const auto refused = append_skip(disk, "/j", 9, 9, 0, small_journal);
  REQUIRE_FALSE(refused);
  CHECK(refused.error().code == ErrorCode::incomplete);
  CHECK(refused.error().message.find("start the node once") != std::string::npos);
}

TEST_CASE("what a damaged hash log does not tell cannot be skipped, until a start has cut it") {
  MemoryDisk disk;
  write_ten_batches(disk);
  const std::vector<std::byte> damage(sizeof(HashEntry), std::byte{0x33});
  const auto sound = disk.bytes("/j/hashlog");
  std::vector<std::byte> log(sound.begin(), sound.end());
  log.insert(log.end(), damage.begin(), damage.end());
  disk.put("/j/hashlog", log);
  const auto refused = append_skip(disk, "/j", 9, 9, 0, small_journal);
  REQUIRE_FALSE(refused);
  CHECK(refused.error().code == ErrorCode::incomplete);
  const auto identity = look_at_hard_state(disk, "/j").value();
  CHECK(HashLog::open(disk, "/j", identity.cluster_id, identity.replica_id, 10)->torn_bytes() == sizeof(HashEntry));
  CHECK(append_skip(disk, "/j", 9, 9, 0, small_journal));
}

TEST_CASE("what is in a snapshot cannot be skipped, whatever became of the hash log") {
  MemoryDisk disk;
  const auto history = write_ten_batches(disk);
  {
    auto recovered = recover(disk, {.directory = "/j"});
    REQUIRE(recovered);
    HardState state = recovered->hard_state.value();
    state.snapshot_index = 5;
    state.snapshot_chain = history[4].chain;
    REQUIRE(recovered->hard_state.store(state));
  }
  const auto refused = append_skip(disk, "/j", 10, 10, 0, small_journal);
  REQUIRE_FALSE(refused);
  CHECK(refused.error().message.find("the snapshot of batch 5") != std::string::npos);
  CHECK(append_skip(disk, "/j", 11, 11, 0, small_journal));
}

TEST_CASE("a power cut at any step of a skip leaves it there or not, and never one that is overlooked") {
  for (std::uint64_t step = 1;; ++step) {
    MemoryDisk disk(step);
    const auto history = write_ten_batches(disk);
    const std::uint64_t before = disk.operations();
    disk.fail_at(step, MemoryDisk::Fault::power_cut, 0);
    const bool done = append_skip(disk, "/j", 8, 8, 0, small_journal).has_value();
    MemoryDisk after = disk.after_power_cut(step);
    const auto skips = read_skips(after, "/j");
    REQUIRE(skips);
    CHECK(skips->size() <= 1);
    if (done) CHECK(*skips == std::vector<std::uint64_t>{8});
    std::uint64_t found = 0;
    auto reader = JournalReader::open(after, "/j", 11);
    if (reader)
      while (const auto batch = reader->next().value()) found += batch->header->record_count;
    CHECK(found == skips->size());
    if (step > disk.operations() - before) break;
  }
}

}  // namespace lockstep
