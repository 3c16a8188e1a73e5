// SPDX-License-Identifier: Apache-2.0
#include "journal/format.hpp"

#include <doctest/doctest.h>

#include "journal/directory.hpp"
#include "journal/hash_log.hpp"
#include "journal/testing/golden.hpp"
#include "journal/testing/journal_run.hpp"
#include "journal/testing/memory_disk.hpp"

namespace lockstep {
namespace {

const std::vector<std::string> example_files{segment_name(1), hard_state_name, hash_log_name};

/// A small history: schema, a batch INLINE, one of several sectors, a tick, MARK; then a start that seals it.
struct Example {
  Example() {
    RecoveryOptions options;
    options.directory = "data";
    options.cluster_id = ClusterId{0x1111111111111111, 0x2222222222222222};
    options.replica_id = 3;
    options.seed = 7;
    REQUIRE(recover(disk, options));
    auto run = JournalRun::start(disk, "data", history, 7, small_journal, schema);
    REQUIRE_MESSAGE(run, run.error().message);
    REQUIRE((*run)->append((*run)->maker().make({0, 40})));
    REQUIRE((*run)->append((*run)->maker().make({4000, 100})));
    REQUIRE((*run)->append((*run)->maker().make({})));
    REQUIRE((*run)->writer().close());
    run->reset();
    REQUIRE(recover(disk, options));
    auto log = HashLog::open(disk, "data", *options.cluster_id, 3, 3);
    REQUIRE(log);
    HashEntry entry;
    entry.index = 2;
    entry.last_seq = 4;
    entry.time_ns = 24;
    entry.state_root = {1, 2};
    entry.effects = {3, 4};
    entry.chain = history[1].chain;
    REQUIRE(log->append(entry));
    entry.kind = HashKind::closing;
    entry.flags = hash_entry_durable;
    entry.index = 3;
    entry.chain = history[2].chain;
    REQUIRE(log->append(entry));
  }
  [[nodiscard]] std::span<const std::byte> file(const std::string& name) { return disk.bytes("data/" + name); }

  MemoryDisk disk;
  std::vector<BatchHeader> history;
  std::vector<std::byte> schema = std::vector<std::byte>(100, std::byte{0x42});
};

TEST_CASE("segment, hard state and hash log are written byte for byte as version 1 is") {
  Example example;
  for (const std::string& name : example_files) {
    const auto bytes = example.file(name);
    CHECK_MESSAGE(dump(bytes) == golden(name + ".hex", bytes), name);
  }
}

TEST_CASE("T56: what version 1 wrote is read") {
  Example example;
  MemoryDisk disk;
  REQUIRE(disk.make_directory("data"));
  for (const std::string& name : example_files)
    disk.put("data/" + name, undump(golden(name + ".hex", example.file(name))));
  CHECK(read_and_compare(disk, "data", example.history).value() == 3);
  CHECK(read_hash_log(disk, "data")->entries.size() == 2);
  RecoveryOptions options;
  options.directory = "data";
  const auto recovered = recover(disk, options);
  REQUIRE_MESSAGE(recovered, recovered.error().message);
  CHECK(recovered->position.index == 3);
  CHECK(recovered->position.chain == example.history[2].chain);
  CHECK(recovered->schema_ids == std::vector{schema_id_of(example.schema)});
}

TEST_CASE("a block gives back the batch header it was made from") {
  Example example;
  const auto segment = example.file(segment_name(1));
  std::uint64_t at = sizeof(SegmentHeader) + disk_block_bytes;  // behind the schema
  for (const BatchHeader& batch : example.history) {
    BlockHeader block;
    std::memcpy(&block, segment.data() + at, sizeof block);
    const BatchHeader rebuilt = batch_header_of(block);
    CHECK(std::memcmp(&rebuilt, &batch, sizeof batch) == 0);
    at += block.total_bytes;
  }
}

TEST_CASE("a payload is padded up to the next sector, and found wanting when it is not") {
  AlignedBuffer buffer(3 * disk_block_bytes);
  pad_for_journal(buffer.span(), 5000);
  CHECK(buffer.span()[4999] == std::byte{0});
  CHECK(buffer.span()[5000] == journal_padding);
  CHECK(buffer.span()[8191] == journal_padding);
  CHECK(buffer.span()[8192] == std::byte{0});
  CHECK(is_padded_for_journal(buffer.span().first(5000)));
  CHECK_FALSE(is_padded_for_journal(buffer.span().first(4999)));
  CHECK(is_padded_for_journal(buffer.span().first(8192)));
}

}  // namespace
}  // namespace lockstep
