// SPDX-License-Identifier: Apache-2.0
#include "runtime/agents/sequencer.hpp"

#include <doctest/doctest.h>

#include <cstring>
#include <optional>
#include <string>
#include <string_view>

using namespace lockstep;

namespace {

constexpr std::uint32_t small_batch_bytes = 4096;

std::span<const std::byte> bytes_of(std::string_view text) {
  return std::as_bytes(std::span(text.data(), text.size()));
}

RecordHeader header_for(std::string_view payload, std::uint64_t request) {
  RecordHeader header;
  header.length = static_cast<std::uint32_t>(payload.size());
  header.actor_type = 7;
  header.session = 1;
  header.request = request;
  header.check = record_check(header, bytes_of(payload));
  return header;
}

/// A sequencer with a pool of four 4 KiB slabs, and the readers played by the test.
struct Bench {
  explicit Bench(const HistoryPosition& end = {}, std::uint32_t seal_depth = 1)
      : pool({.slabs = 4, .max_batch_bytes = small_batch_bytes, .executors = 1, .last_index = end.index}),
        sequencer(pool, end, {.seal_depth = seal_depth, .schema_id = 99}) {}

  bool add(std::string_view payload, std::int64_t arrival_ns) {
    std::byte* const at = sequencer.claim(payload.size());
    if (at == nullptr) return false;
    CHECK(reinterpret_cast<std::uintptr_t>(at) % record_alignment == 0);
    std::memcpy(at, payload.data(), payload.size());
    sequencer.commit(header_for(payload, ++requests), arrival_ns);
    return true;
  }
  int work(std::int64_t real_ns = 0) { return sequencer.do_work({.real_ns = real_ns, .steady_ns = real_ns / 2}); }
  void finish(std::uint64_t index) {
    pool.written().publish(index);
    pool.committed().publish(index);
    pool.executed(0).publish(index);
  }
  const BatchHeader& header(std::uint64_t index) { return *pool.view(index).header; }

  BatchPool pool;
  Sequencer sequencer;
  std::uint64_t requests = 0;
};

}  // namespace

TEST_CASE("an idle sequencer seals the first record at once, as a batch that stands every check") {
  Bench bench;
  REQUIRE(bench.add("hello", 1000));
  CHECK(bench.pool.sealed() == 0);
  CHECK(bench.work() == 1);
  REQUIRE(bench.pool.sealed() == 1);
  const BatchView batch = bench.pool.view(1);
  CHECK(batch_defect(batch) == std::nullopt);
  CHECK(batch.header->first_seq == 1);
  CHECK(batch.header->record_count == 1);
  CHECK(batch.header->schema_id == 99);
  CHECK(batch.header->first_time_ns == 1000);
  CHECK(batch.header->prev_chain.is_zero());
}

TEST_CASE("records that arrive while sealed batches await their commit are sealed together after it") {
  Bench bench;
  REQUIRE(bench.add("first", 1));
  bench.work();
  for (int i = 0; i != 3; ++i) {
    REQUIRE(bench.add("next", 2 + i));
    CHECK(bench.work() == 0);
  }
  CHECK(bench.pool.sealed() == 1);
  bench.finish(1);
  CHECK(bench.work() == 1);
  CHECK(bench.header(2).record_count == 3);
  CHECK(bench.header(2).first_seq == 2);
  CHECK(bench.header(2).prev_chain == bench.header(1).chain);
}

TEST_CASE("a full batch is sealed without waiting, and a full pool refuses until every reader has passed a slab") {
  Bench bench;
  const std::string payload(1000, 'x');  // three records a batch
  int accepted = 0;
  while (bench.add(payload, 5)) ++accepted;
  CHECK(accepted == 12);
  CHECK(bench.pool.sealed() == 4);
  for (std::uint64_t index = 1; index <= 4; ++index) CHECK(batch_defect(bench.pool.view(index)) == std::nullopt);

  bench.pool.written().publish(1);
  bench.pool.committed().publish(1);
  CHECK_FALSE(bench.add(payload, 6));  // the executor still reads batch 1
  bench.pool.executed(0).publish(1);
  CHECK(bench.add(payload, 6));
}

TEST_CASE("the largest payload fills a batch alone") {
  Bench bench;
  REQUIRE(bench.add("small", 1));
  REQUIRE(bench.add(std::string(bench.sequencer.max_payload_bytes(), 'y'), 2));
  CHECK(bench.pool.sealed() == 1);
  bench.finish(1);
  bench.work();
  CHECK(bench.header(2).payload_bytes == small_batch_bytes);
  CHECK(batch_defect(bench.pool.view(2)) == std::nullopt);
}

TEST_CASE("a payload's last block is filled as the journal's reader expects") {
  Bench bench;
  REQUIRE(bench.add("hello", 1));
  bench.work();
  const auto padded = bench.pool.padded_payload(1);
  REQUIRE(padded.size() == 4096);
  for (std::size_t i = bench.header(1).payload_bytes; i != padded.size(); ++i) REQUIRE(padded[i] == std::byte{0xA5});
}

TEST_CASE("stamped time never runs back, behind the recovered history neither") {
  Bench bench({.index = 9, .seq = 70, .time_ns = 5000, .chain = {1, 2}}, 4);
  REQUIRE(bench.add("a", 4000));
  REQUIRE(bench.add("b", 6000));
  REQUIRE(bench.add("c", 5500));
  bench.work();
  const BatchHeader& header = bench.header(10);
  CHECK(header.first_seq == 71);
  CHECK(header.first_time_ns == 5000);
  CHECK(header.last_time_ns == 6000);
  CHECK(header.prev_chain == Digest{1, 2});
  CHECK(batch_defect(bench.pool.view(10)) == std::nullopt);
}

TEST_CASE("genesis is the first record of batch 1, under the messages that came with it") {
  Bench bench;
  bench.sequencer.append_genesis(bytes_of("configuration"), 10);
  REQUIRE(bench.add("hello", 11));
  bench.work();
  const BatchView batch = bench.pool.view(1);
  CHECK(batch_defect(batch) == std::nullopt);
  RecordCursor records(batch.payload);
  const auto genesis = records.next();
  CHECK(genesis->header->kind == RecordKind::genesis);
  CHECK(genesis->header->seq == 1);
  CHECK(records.next()->header->seq == 2);
}

TEST_CASE("an empty batch is stamped when a timer is due, once, and not before it is due") {
  Bench bench({.index = 3, .seq = 5, .time_ns = 100, .chain = {}});
  NextDue due;
  bench.sequencer.add_due(due);
  CHECK(bench.work(200) == 0);
  due.time_ns.store(300);
  CHECK(bench.work(200) == 0);
  CHECK(bench.sequencer.deadline_ns() == 100 + 100);  // steady time is half of real time in this test
  CHECK(bench.work(320) == 1);
  const BatchView tick = bench.pool.view(4);
  CHECK(batch_defect(tick) == std::nullopt);
  CHECK(tick.header->record_count == 0);
  CHECK(tick.header->first_time_ns == 320);
  CHECK(tick.header->last_time_ns == 320);
  CHECK(tick.header->first_seq == 6);
  CHECK(bench.work(330) == 0);  // not executed yet, so what is due is not known
  due.time_ns.store(NextDue::nothing_due);
  bench.finish(4);
  CHECK(bench.work(340) == 0);
  CHECK(bench.sequencer.deadline_ns() == INT64_MAX);
}

TEST_CASE("mail carried over asks for a tick at once, at a time that does not run back") {
  Bench bench({.index = 3, .seq = 5, .time_ns = 1000, .chain = {}});
  NextDue due;
  due.time_ns.store(NextDue::mail_carried);
  bench.sequencer.add_due(due);
  CHECK(bench.work(200) == 1);
  CHECK(bench.header(4).first_time_ns == 1000);
}

TEST_CASE("records of several perimeters are merged into one order with one monotone time") {
  Bench bench({}, 4);
  ByteRing left(4096);
  ByteRing right(4096);
  bench.sequencer.add_inbound(left);
  bench.sequencer.add_inbound(right);
  const auto push = [](ByteRing& ring, std::string_view payload, std::int64_t arrival_ns, bool is_void = false) {
    RecordHeader header = header_for(payload, 1);
    header.timestamp_ns = arrival_ns;
    if (is_void) header.kind = void_record;
    const auto frame = ring.claim(sizeof header + payload.size());
    std::memcpy(frame.data(), &header, sizeof header);
    std::memcpy(frame.data() + sizeof header, payload.data(), payload.size());
    ring.publish();
  };
  push(left, "l1", 50);
  push(left, "refused", 55, true);
  push(left, "l2", 60);
  push(right, "r1", 40);
  push(right, "r2", 70);
  CHECK(bench.work() == 6);
  const BatchView batch = bench.pool.view(1);
  CHECK(batch_defect(batch) == std::nullopt);
  CHECK(batch.header->record_count == 4);
  RecordCursor records(batch.payload);
  std::string order;
  while (const auto record = records.next())
    order.append(reinterpret_cast<const char*>(record->payload.data()), record->payload.size());
  CHECK(order == "l1l2r1r2");
  CHECK(left.is_empty());
}

TEST_CASE("a full pool leaves the records in the perimeters' rings") {
  Bench bench;
  ByteRing ring(1U << 16);
  bench.sequencer.add_inbound(ring);
  const std::string payload(3000, 'z');
  const RecordHeader header = header_for(payload, 1);
  for (int i = 0; i != 6; ++i) {
    const auto frame = ring.claim(sizeof header + payload.size());
    std::memcpy(frame.data(), &header, sizeof header);
    std::memcpy(frame.data() + sizeof header, payload.data(), payload.size());
  }
  ring.publish();
  while (bench.work() != 0) continue;
  CHECK(bench.pool.sealed() == 4);
  CHECK_FALSE(ring.is_empty());
  bench.finish(4);
  while (bench.work() != 0) bench.finish(bench.pool.sealed());
  CHECK(ring.is_empty());
  CHECK(bench.sequencer.last_seq() == 6);
}
