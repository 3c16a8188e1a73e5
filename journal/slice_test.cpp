// SPDX-License-Identifier: Apache-2.0
#include "journal/slice.hpp"

#include <doctest/doctest.h>

#include <cstring>

#include "journal/directory.hpp"
#include "journal/hash_log.hpp"
#include "journal/inspect.hpp"
#include "journal/testing/journal_run.hpp"
#include "journal/testing/memory_disk.hpp"

namespace lockstep {
namespace {

/// A journal of 40 batches, with a root recorded at each tenth.
struct Source {
  Source() {
    const std::string schema(700, 's');
    auto run = JournalRun::start(disk, "in", history, 1, small_journal, std::as_bytes(std::span(schema)));
    REQUIRE_MESSAGE(run, run.error().message);
    for (int i = 0; i < 40; ++i) REQUIRE((*run)->append((*run)->maker().make({100, 200, 3000})));
    REQUIRE((*run)->settle());
    const HardState& state = (*run)->writer().hard_state();
    auto log = HashLog::open(disk, "in", state.cluster_id, state.replica_id, 40);
    REQUIRE(log);
    for (std::uint64_t index = 10; index <= 40; index += 10) {
      HashEntry entry;
      entry.index = index;
      entry.chain = history[index - 1].chain;
      REQUIRE(log->append(entry));
    }
  }
  MemoryDisk disk;
  std::vector<BatchHeader> history;
};

TEST_CASE("a slice from the first batch is a journal of its own: sound, with the same chain, and it goes on") {
  Source source;
  const auto slice = cut_slice(source.disk, {.from = "in", .to = "out", .first_seq = 1, .last_seq = 50});
  REQUIRE_MESSAGE(slice, slice.error().message);
  CHECK(slice->last.index == 17);  // the batch that holds seq 50
  CHECK(slice->last.chain == source.history[16].chain);
  const auto info = inspect_journal(source.disk, "out", InspectDepth::records);
  REQUIRE_MESSAGE(info, info.error().message);
  CHECK(info->sound());
  CHECK(info->schema_ids.size() == 1);
  CHECK(read_and_compare(source.disk, "out", source.history).value() == 17);
  const auto roots = read_hash_log(source.disk, "out");
  REQUIRE(roots);
  CHECK(roots->entries.size() == 1);

  const std::string schema(700, 's');
  auto run = JournalRun::start(source.disk, "out", source.history, 5, small_journal, std::as_bytes(std::span(schema)));
  REQUIRE_MESSAGE(run, run.error().message);
  REQUIRE((*run)->append((*run)->maker().make({77})));
  REQUIRE((*run)->settle());
  CHECK(read_and_compare(source.disk, "out", source.history).value() == 18);
}

TEST_CASE("a slice that begins later is refused without a snapshot, and makes nothing") {
  Source source;
  const auto refused = cut_slice(source.disk, {.from = "in", .to = "out", .first_seq = 10, .last_seq = 50});
  REQUIRE_FALSE(refused);
  CHECK(refused.error().code == ErrorCode::usage);
  CHECK(refused.error().message.find("--with-snapshot") != std::string::npos);
  CHECK_FALSE(source.disk.open("out/hardstate", OpenMode::read));
}

TEST_CASE("with a snapshot asked for and none there, a slice begins at the first batch") {
  Source source;
  const auto slice =
      cut_slice(source.disk, {.from = "in", .to = "out", .first_seq = 10, .last_seq = 50, .with_snapshot = true});
  REQUIRE_MESSAGE(slice, slice.error().message);
  CHECK(slice->before.index == 0);
  CHECK_FALSE(slice->snapshot);
}

TEST_CASE("a slice is not cut into a directory that holds anything, and an empty range leaves nothing behind") {
  Source source;
  CHECK_FALSE(cut_slice(source.disk, {.from = "in", .to = "in"}));
  CHECK(read_and_compare(source.disk, "in", source.history).value() == 40);
  const auto refused =
      cut_slice(source.disk, {.from = "in", .to = "out", .first_seq = 500, .last_seq = 600, .with_snapshot = true});
  REQUIRE_FALSE(refused);
  CHECK(refused.error().message.find("has no batch of seq 500") != std::string::npos);
  CHECK_FALSE(source.disk.list("out"));
}

TEST_CASE("a slice without the roots that could not be read is not passed off as one that had none") {
  Source source;
  source.disk.overwrite("in/" + std::string(hash_log_name), 0, std::vector(sizeof(HashLogHeader), std::byte{0x5a}));
  const SliceRequest request{.from = "in", .to = "out", .first_seq = 1, .last_seq = 50};
  const auto refused = cut_slice(source.disk, request);
  REQUIRE_FALSE(refused);
  CHECK(refused.error().message.find("its header is damaged") != std::string::npos);
  CHECK_FALSE(source.disk.list("out"));
  REQUIRE(source.disk.remove("in/" + std::string(hash_log_name)));
  CHECK(cut_slice(source.disk, request));
}

TEST_CASE("a slice takes no roots over from another cluster's hash log") {
  Source source;
  MemoryDisk other;
  REQUIRE(other.make_directory("in"));
  REQUIRE(HashLog::open(other, "in", ClusterId{7, 7}, 0, 40));
  const auto foreign = other.bytes("in/" + std::string(hash_log_name));
  source.disk.put("in/" + std::string(hash_log_name), {foreign.begin(), foreign.end()});
  const auto refused = cut_slice(source.disk, {.from = "in", .to = "out", .first_seq = 1, .last_seq = 50});
  REQUIRE_FALSE(refused);
  CHECK(refused.error().code == ErrorCode::incompatible);
  CHECK_FALSE(source.disk.list("out"));
}

TEST_CASE("a hash log that is damaged may be cut from up to where it is sound") {
  Source source;
  const std::string path = "in/" + std::string(hash_log_name);
  source.disk.overwrite(path, sizeof(HashLogHeader) + 2 * sizeof(HashEntry) + 50, std::vector(1, std::byte{0xff}));
  const auto seq_of = [&](std::size_t batch) { return position_after(source.history[batch - 1]).seq; };
  const auto before = cut_slice(source.disk, {.from = "in", .to = "before", .first_seq = 1, .last_seq = seq_of(20)});
  REQUIRE_MESSAGE(before, before.error().message);
  CHECK(read_hash_log(source.disk, "before")->entries.size() == 2);
  const auto beyond = cut_slice(source.disk, {.from = "in", .to = "beyond", .first_seq = 1, .last_seq = seq_of(21)});
  REQUIRE_FALSE(beyond);
  CHECK(beyond.error().code == ErrorCode::incomplete);
  CHECK(beyond.error().message.find("behind batch 20") != std::string::npos);
  CHECK_FALSE(source.disk.list("beyond"));
}

TEST_CASE("a reader passes damage and goes on with what is behind it") {
  Source source;
  const std::string path = "in/" + segment_name(2);
  BlockHeader first;
  std::memcpy(&first, source.disk.bytes(path).data() + sizeof(SegmentHeader), sizeof first);
  REQUIRE(first.type == BlockType::schema);
  const std::uint64_t at = sizeof(SegmentHeader) + first.total_bytes + 300;
  source.disk.overwrite(path, at, std::vector(1, std::byte{0xee}));
  auto reader = JournalReader::open(source.disk, "in");
  REQUIRE(reader);
  std::uint64_t read = 0;
  int damages = 0;
  for (;;) {
    const auto batch = reader->next();
    if (batch && !*batch) break;
    if (batch) {
      ++read;
      continue;
    }
    ++damages;
    REQUIRE(damages < 5);
    const auto passed = reader->pass_damage();
    REQUIRE(passed);
    if (!*passed) break;
  }
  CHECK(read == 39);
  CHECK(damages == 1);
  CHECK(reader->position().index == 40);
}

}  // namespace
}  // namespace lockstep
