// SPDX-License-Identifier: Apache-2.0
#include "journal/writer.hpp"

#include <doctest/doctest.h>

#include <cerrno>
#include <cstring>

#include "journal/directory.hpp"
#include "journal/inspect.hpp"
#include "journal/testing/journal_run.hpp"
#include "journal/testing/memory_disk.hpp"

namespace lockstep {
namespace {

const std::string directory = "data";

/// Record payload bytes that make a one-record batch of this many payload bytes.
constexpr std::uint32_t length_for(std::uint32_t payload_bytes) {
  return payload_bytes - static_cast<std::uint32_t>(sizeof(RecordHeader));
}

/// The largest payload a segment of 64 KiB has room for: less segment header, block header and SEAL.
constexpr std::uint32_t filling_payload = min_segment_bytes - 3 * disk_block_bytes;
static_assert(block_total_bytes(filling_payload) == min_segment_bytes - 2 * disk_block_bytes);
constexpr JournalOptions large_batches{
    .segment_bytes = min_segment_bytes, .max_inflight = 4, .max_batch_bytes = filling_payload};

std::vector<BlockType> block_types(const MemoryDisk& disk, std::uint64_t segment_id) {
  std::vector<BlockType> types;
  const auto bytes = disk.bytes(directory + "/" + segment_name(segment_id));
  for (std::uint64_t at = sizeof(SegmentHeader); at < bytes.size();) {
    BlockHeader header;
    std::memcpy(&header, bytes.data() + at, sizeof header);
    if (header.magic != block_magic) break;
    types.push_back(header.type);
    at += header.total_bytes;
  }
  return types;
}

struct Run {
  explicit Run(const JournalOptions& options = small_journal, std::span<const std::byte> schema = {}) {
    auto started = JournalRun::start(disk, directory, history, 1, options, schema);
    REQUIRE_MESSAGE(started, started.error().message);
    run = std::move(*started);
  }
  MemoryDisk disk;
  std::vector<BatchHeader> history;
  std::unique_ptr<JournalRun> run;
};

TEST_CASE("T53: a batch may fill a segment to the last sector; one sector more begins the next segment") {
  Run exact(large_batches);
  REQUIRE(exact.run->append(exact.run->maker().make({length_for(filling_payload)})));
  REQUIRE(exact.run->settle());
  CHECK(block_types(exact.disk, 1) == std::vector{BlockType::batch});
  REQUIRE(exact.run->append(exact.run->maker().make({})));
  REQUIRE(exact.run->settle());
  CHECK(block_types(exact.disk, 1) == std::vector{BlockType::batch, BlockType::seal});
  CHECK(block_types(exact.disk, 2) == std::vector{BlockType::batch});
  CHECK(read_and_compare(exact.disk, directory, exact.history).value() == 2);

  Run longer(large_batches);
  REQUIRE(longer.run->append(longer.run->maker().make({})));
  REQUIRE(longer.run->append(longer.run->maker().make({length_for(filling_payload)})));
  REQUIRE(longer.run->settle());
  CHECK(block_types(longer.disk, 1) == std::vector{BlockType::batch, BlockType::seal});
  CHECK(block_types(longer.disk, 2) == std::vector{BlockType::batch});
  CHECK(read_and_compare(longer.disk, directory, longer.history).value() == 2);
}

TEST_CASE("T55: batches of every size around a sector come back bit for bit") {
  Run every;
  for (std::uint32_t length = 0; length <= disk_block_bytes + 16; ++length)
    REQUIRE(every.run->append(every.run->maker().make({length})));
  for (std::uint32_t length = disk_block_bytes; length <= 2 * disk_block_bytes + 16; length += 16)
    REQUIRE(every.run->append(every.run->maker().make({length})));
  REQUIRE(every.run->append(every.run->maker().make({0, 0, 0})));
  REQUIRE(every.run->append(every.run->maker().make({})));
  REQUIRE(every.run->settle());
  CHECK(read_and_compare(every.disk, directory, every.history).value() == every.history.size());
}

TEST_CASE("no more than max_inflight blocks are ever ahead of what is durable") {
  Run run;
  REQUIRE(run.run->wait_for_room());
  for (int i = 0; i < 4; ++i) {
    REQUIRE(run.run->writer().can_append());
    REQUIRE(run.run->append_random());
  }
  CHECK_FALSE(run.run->writer().can_append());
  CHECK(run.run->writer().durable_index() == 0);
  REQUIRE(run.run->settle());
  CHECK(run.run->writer().can_append());
}

TEST_CASE("T41: written comes before durable, and one sync covers all that was written before it") {
  Run run;
  for (int i = 0; i < 10; ++i) run.run->poll();
  for (int i = 0; i < 4; ++i) REQUIRE(run.run->append(run.run->maker().make({100})));
  run.run->poll();
  CHECK(run.run->writer().written_index() == 4);
  CHECK(run.run->writer().durable_index() == 0);
  run.run->poll();
  CHECK(run.run->writer().durable_index() == 4);
  CHECK(run.run->writer().counters().syncs == 1);
}

TEST_CASE("a MARK follows a millisecond after the last batch became durable, once") {
  Run run;
  REQUIRE(run.run->append_random());
  REQUIRE(run.run->settle());
  for (int i = 0; i < 5; ++i) run.run->poll();
  CHECK(block_types(run.disk, 1) == std::vector{BlockType::batch});
  CHECK(run.run->writer().deadline_ns() < INT64_MAX);
  run.run->advance(1'000'000);
  for (int i = 0; i < 5; ++i) run.run->poll();
  run.run->advance(50'000'000);
  for (int i = 0; i < 5; ++i) run.run->poll();
  CHECK(block_types(run.disk, 1) == std::vector{BlockType::batch, BlockType::mark});
  CHECK(run.run->writer().deadline_ns() == INT64_MAX);
}

TEST_CASE("a closed journal ends with a MARK, or with a SEAL where there is no room for one") {
  Run run;
  REQUIRE(run.run->append_random());
  REQUIRE(run.run->writer().close());
  CHECK(block_types(run.disk, 1) == std::vector{BlockType::batch, BlockType::mark});

  Run full(large_batches);
  REQUIRE(full.run->append(full.run->maker().make({length_for(filling_payload)})));
  REQUIRE(full.run->writer().close());
  CHECK(block_types(full.disk, 1) == std::vector{BlockType::batch, BlockType::seal});
}

TEST_CASE("each segment with batches starts with the schema they carry") {
  const std::vector<std::byte> schema(4500, std::byte{3});
  Run run(small_journal, schema);
  for (int i = 0; i < 40; ++i) REQUIRE(run.run->append_random());
  REQUIRE(run.run->settle());
  const auto info = inspect_journal(run.disk, directory, InspectDepth::records);
  REQUIRE_MESSAGE(info, info.error().message);
  CHECK(info->schema_ids == std::vector{schema_id_of(schema)});
  for (const SegmentInfo& segment : info->segments)
    if (!segment.spare) CHECK(block_types(run.disk, segment.segment_id).front() == BlockType::schema);
}

TEST_CASE("T36: a full disk holds appends back, and lets them go on when there is space again") {
  Run run;
  for (int i = 0; i < 5; ++i) run.run->poll();
  run.disk.set_free_bytes(0);
  std::uint64_t appended = 0;
  while (run.run->append_random()) ++appended;
  CHECK(appended > 10);
  CHECK_FALSE(run.run->writer().failure());
  REQUIRE(run.run->writer().out_of_space());
  CHECK(run.run->writer().out_of_space()->code == ErrorCode::full);
  CHECK(run.run->settle());

  run.disk.set_free_bytes(UINT64_MAX);
  run.run->advance(small_journal.space_retry_ns);
  for (int i = 0; i < 20; ++i) REQUIRE(run.run->append(run.run->maker().make({100})));
  REQUIRE(run.run->settle());
  CHECK_FALSE(run.run->writer().out_of_space());
}

TEST_CASE("T36: ENOSPC from a write into space that was reserved is as final as any error") {
  Run run;
  REQUIRE(run.run->append_random());
  for (int i = 0; i < 10; ++i) run.run->poll();
  run.disk.fail_at(1, MemoryDisk::Fault::error, ENOSPC);
  REQUIRE(run.run->append_random());
  CHECK_FALSE(run.run->settle());
  REQUIRE(run.run->writer().failure());
  CHECK(run.run->writer().failure()->message.find("cannot write block 2 at offset 8192") != std::string::npos);
  CHECK(run.run->writer().failure()->message.find("No space left on device (errno 28)") != std::string::npos);
}

TEST_CASE("closing waits for what is in flight, also after a failure") {
  Run run;
  for (int i = 0; i < 10; ++i) run.run->poll();
  run.disk.shuffle_completions();
  run.disk.fail_at(1, MemoryDisk::Fault::error, EIO);
  for (int i = 0; i < 4; ++i) REQUIRE(run.run->append_random());
  while (!run.run->writer().failure()) run.run->poll();
  int turns = 0;
  const auto closed = run.run->writer().close([&] { ++turns; });
  REQUIRE_FALSE(closed);
  CHECK(closed.error().message == run.run->writer().failure()->message);
  CHECK(run.disk.in_flight() == 0);
  CHECK(run.run->writer().durable_index() == 0);
}

TEST_CASE("a batch whose payload changed after it was sealed is not stored") {
  Run run;
  OwnedBatch batch = run.run->maker().make({500});
  batch.buffer.data()[100] ^= std::byte{1};
  REQUIRE(run.run->append(std::move(batch)));
  REQUIRE(run.run->writer().failure());
  CHECK(run.run->writer().failure()->code == ErrorCode::corrupt);
  CHECK(run.run->writer().durable_index() == 0);
}

TEST_CASE("options that cannot work are refused with the numbers that would") {
  MemoryDisk disk;
  const auto refuses = [&](JournalOptions options) {
    auto recovered = recover(disk, {.directory = directory});
    REQUIRE(recovered);
    const auto writer = JournalWriter::open(disk, std::move(*recovered), options, {});
    return !writer && writer.error().code == ErrorCode::usage;
  };
  CHECK(refuses({.segment_bytes = 64 << 10, .max_batch_bytes = 64 << 10}));
  CHECK(refuses({.segment_bytes = (64 << 20) + 1}));
  CHECK(refuses({.segment_bytes = std::uint64_t{2} << 30}));
  CHECK(refuses({.max_inflight = 0}));
  CHECK(refuses({.max_inflight = max_inflight_limit + 1}));
  CHECK(refuses({.max_batch_bytes = 9 << 20}));
}

}  // namespace
}  // namespace lockstep
