// SPDX-License-Identifier: Apache-2.0

/// What a replay takes of memory, and when it gives a batch's memory to another.

#include <doctest/doctest.h>

#include <algorithm>
#include <cstring>
#include <random>

#include "journal/testing/heap_count.hpp"
#include "journal/testing/journal_run.hpp"
#include "journal/testing/memory_disk.hpp"
#include "runtime/agents/testing/workload.hpp"
#include "runtime/history_run.hpp"

namespace lockstep {
namespace {

using namespace testing;

const std::string directory = "data";

OwnedBatch aligned(const BatchView& batch) {
  OwnedBatch owned{*batch.header, AlignedBuffer(batch.payload.size())};
  if (!batch.payload.empty()) std::memcpy(owned.buffer.data(), batch.payload.data(), batch.payload.size());
  pad_for_journal(owned.buffer.span(), batch.payload.size());
  return owned;
}

/// A journal of the workload's first batches.
void write_journal(MemoryDisk& disk, MemoryHistory& history, std::size_t batches) {
  std::vector<BatchHeader> appended;
  const auto schema = workload().schema();
  JournalOptions options = small_journal;
  options.segment_bytes = 256 << 10;
  options.max_batch_bytes = 64 << 10;
  auto run = JournalRun::start(disk, directory, appended, 5, options, schema);
  REQUIRE_MESSAGE(run, run.error().message);
  for (std::size_t i = 0; i < batches; ++i) REQUIRE((*run)->append(aligned(history.batch(i))));
  REQUIRE((*run)->settle());
  REQUIRE((*run)->writer().close());
}

struct Replayed {
  Checkpoint end;
  std::uint64_t peak_bytes = 0;
  std::uint64_t journal_bytes = 0;
};

/// Runs the first batches of a history out of a journal, on the caller's thread.
Replayed replay(std::uint64_t seed, std::size_t batches) {
  MemoryDisk disk;
  {
    Workload load(seed);
    for (std::size_t i = 0; i < batches; ++i) load.random_batch();
    write_journal(disk, load.history(), batches);
  }
  auto reader = JournalReader::open(disk, directory);
  REQUIRE(reader);
  Execution execution(workload(), workload_genesis(), {.executors = 2, .slabs = 4, .max_batch_bytes = 64U << 10U});
  ManualClock clock(0);
  reset_heap_peak();
  const std::uint64_t before = heap_count().live_bytes;
  HistoryRunOptions options;
  options.own_threads = false;
  const auto run = run_history(*reader, execution, clock, options);
  REQUIRE_MESSAGE(run, run.error().message);
  REQUIRE(run->last.index == batches);
  return {run->final_state, heap_count().peak_bytes - before, run->journal_bytes};
}

TEST_CASE("T59: a replay of eight times as many batches takes no more memory") {
  constexpr std::uint64_t slack_bytes = 128 << 10;
  const Replayed less = replay(1, 500);
  const Replayed more = replay(1, 4000);
  REQUIRE(more.journal_bytes > less.journal_bytes + 32 * slack_bytes);
  CHECK(more.peak_bytes <= less.peak_bytes + slack_bytes);
}

/// Executors that are turned unevenly, fed from a pool of two slabs by hand.
class Uneven {
 public:
  Uneven(std::uint32_t executors, std::uint64_t seed)
      : random_(seed),
        execution_(workload(), workload_genesis(),
                   {.executors = executors, .slabs = slabs, .max_batch_bytes = 64U << 10U}) {}

  /// Feeds a batch when its slab is free, and has whoever has passed a batch find nothing in its slab any more.
  void run(MemoryHistory& history) {
    for (std::size_t i = 0; i < history.size();) {
      if (pool().can_open(i + 1)) {
        feed(history.batch(i++));
      } else {
        turn_one();
      }
      check_and_poison(history);
    }
    while (pool().executed_by_all() < history.size()) {
      turn_one();
      check_and_poison(history);
    }
    end_ = execution_.end(*history.batch(history.size() - 1).header);
  }
  [[nodiscard]] const Checkpoint& end() const { return end_; }
  [[nodiscard]] std::uint64_t held_back() const { return held_back_; }

 private:
  static constexpr std::uint32_t slabs = 2;

  BatchPool& pool() { return execution_.pool(); }

  void feed(const BatchView& batch) {
    const std::uint64_t index = batch.header->index;
    std::memcpy(pool().payload(index), batch.payload.data(), batch.payload.size());
    pool().header(index) = *batch.header;
    pool().publish_sealed(index);
    pool().written().publish(index);
    pool().committed().publish(index);
    sealed_ = index;
  }

  /// One executor takes a few turns while the others stand still.
  void turn_one() {
    const auto executor = static_cast<std::uint32_t>(random_() % execution_.executors());
    for (std::uint64_t turns = 1 + random_() % 3; turns > 0; --turns) execution_.agent(executor).do_work({});
    while (execution_.board().poll()) continue;
  }

  void check_and_poison(MemoryHistory& history) {
    const std::uint64_t passed = pool().executed_by_all();
    for (; poisoned_ < passed; ++poisoned_)
      std::memset(pool().payload(poisoned_ + 1), 0xEE, history.batch(poisoned_).payload.size());
    for (std::uint64_t index = passed + 1; index <= sealed_; ++index) {
      REQUIRE(std::ranges::equal(pool().view(index).payload, history.batch(index - 1).payload));
      REQUIRE_FALSE(pool().can_open(index + slabs));
      ++held_back_;
    }
  }

  std::mt19937_64 random_;
  Execution execution_;
  Checkpoint end_;
  std::uint64_t sealed_ = 0;
  std::uint64_t poisoned_ = 0;  ///< batches up to here are gone from their slabs
  std::uint64_t held_back_ = 0;
};

TEST_CASE("T59: a batch stays in its slab until every executor has passed it, and none looks at it afterwards") {
  for (std::uint64_t seed = 1; seed <= 4; ++seed) {
    CAPTURE(seed);
    Workload load(seed);
    for (int i = 0; i < 200; ++i) load.random_batch();
    Uneven alone(1, seed);
    alone.run(load.history());
    for (const std::uint32_t executors : {2U, 3U}) {
      CAPTURE(executors);
      Uneven some(executors, seed + executors);
      some.run(load.history());
      CHECK(some.end() == alone.end());
      CHECK(some.held_back() > 100);
    }
  }
}

}  // namespace
}  // namespace lockstep
