// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <map>
#include <memory>
#include <optional>

#include "journal/snapshots.hpp"
#include "journal/testing/memory_disk.hpp"
#include "runtime/agents/snapshot_agent.hpp"
#include "runtime/agents/testing/workload.hpp"
#include "runtime/execution.hpp"

namespace lockstep {
namespace {

using namespace testing;

const std::string directory = "data";

/// Executors, and what takes snapshots of them, turned by the test; where a node has a sequencer and a journal, it
/// flags and acknowledges itself.
class Bench {
 public:
  struct Layout {
    std::uint32_t executors = 1;
    std::size_t pages_per_turn = 64;
    std::uint64_t quota_bytes = 8U << 20U;
    std::uint64_t from = 0;  ///< the batch whose snapshot is restored
  };

  explicit Bench(const Layout& layout, MemoryDisk& disk)
      : disk_(disk),
        layout_(layout),
        execution_(workload(), workload_genesis(),
                   {.executors = layout.executors,
                    .slabs = 8,
                    .max_batch_bytes = 64U << 10U,
                    .sweep = {.quota_bytes = layout.quota_bytes,
                              .ring_bytes = 512U << 10U,
                              .pages_per_turn = layout.pages_per_turn},
                    .last_index = layout.from}),
        log_(std::move(*HashLog::open(disk, directory, {}, 0, UINT64_MAX))),
        checkpoints_(execution_.board(), log_, true),
        agent_(disk, execution_, checkpoints_,
               {.directory = directory,
                .genesis = encode(workload_genesis()),
                .shards = workload_genesis().shards,
                .newest_index = layout.from,
                .retry_ns = 1000}) {
    if (layout.from == 0) return;
    auto reader = SnapshotReader::open(disk, directory + "/" + snapshot_name(layout.from));
    REQUIRE(reader);
    const auto restored = execution_.restore(*reader);
    REQUIRE_MESSAGE(restored, restored.error().message);
  }

  SnapshotAgent& agent() { return agent_; }
  SnapshotControl& control() { return *execution_.snapshots(); }

  void run(const BatchView& batch) {
    while (!pool().can_open(batch.header->index)) turn();
    last_ = *batch.header;
    std::memcpy(pool().payload(last_.index), batch.payload.data(), batch.payload.size());
    pool().header(last_.index) = last_;
    pool().snapshot_wanted(last_.index) =
        is_checkpoint(last_.first_seq, last_.record_count, workload_genesis().checkpoint_interval) &&
        control().wanted.exchange(false);
    pool().publish_sealed(last_.index);
    pool().written().publish(last_.index);
    pool().committed().publish(last_.index);
    turn();
  }

  /// One turn of everybody; true when something was done.
  bool turn() {
    now_.steady_ns += 1000;
    int done = checkpoints_.do_work(now_);
    for (std::uint32_t i = 0; i < layout_.executors; ++i) done += execution_.agent(i).do_work(now_);
    done += agent_.do_work(now_);
    if (const auto published = control().published.read(); published != control().stored.read()) {
      const auto bytes = disk_.bytes(directory + "/" + snapshot_name(published));
      files_[published] = {bytes.begin(), bytes.end()};
      control().stored.publish(published);
    }
    return done > 0;
  }
  void settle() {
    while (turn()) {
    }
  }
  /// Asks for a snapshot at the next checkpoint; one under way is finished first.
  void ask() {
    settle();
    agent_.ask();
    turn();
    REQUIRE(control().wanted.load());
  }

  /// Where the executors have come to.
  [[nodiscard]] Checkpoint end() { return execution_.end(last_); }
  [[nodiscard]] std::vector<Checkpoint> checkpoints() const { return checkpoints_.recent(); }
  [[nodiscard]] std::int64_t next_due_ns() const {
    std::int64_t earliest = NextDue::nothing_due;
    for (std::uint32_t i = 0; i < layout_.executors; ++i)
      earliest = std::min(earliest, execution_.due(i).time_ns.load());
    return earliest;
  }
  /// Every snapshot that was made, by its batch.
  [[nodiscard]] const std::map<std::uint64_t, std::vector<std::byte>>& files() const { return files_; }

 private:
  BatchPool& pool() { return execution_.pool(); }

  MemoryDisk& disk_;
  Layout layout_;
  Execution execution_;
  HashLog log_;
  CheckpointAgent checkpoints_;
  SnapshotAgent agent_;
  Now now_;
  BatchHeader last_;
  std::map<std::uint64_t, std::vector<std::byte>> files_;
};

MemoryDisk data_directory() {
  MemoryDisk disk;
  REQUIRE(disk.make_directory(directory));
  REQUIRE(HardStateFile::create(disk, directory, {}));
  return disk;
}

constexpr std::size_t batches = 160;

/// Runs the history, with a snapshot asked for before each batch in `asked`.
void run(Bench& bench, MemoryHistory& history, std::size_t from, std::size_t every) {
  for (std::size_t i = from; i < history.size(); ++i) {
    if (every != 0 && i % every == every - 1) bench.ask();
    bench.run(history.batch(i));
  }
  bench.settle();
}

TEST_CASE("snapshots under load are equal byte for byte whatever the executors, and what follows them is as ever") {
  for (std::uint64_t seed = 1; seed <= 3; ++seed) {
    CAPTURE(seed);
    Workload load(seed);
    for (std::size_t i = 0; i < batches; ++i) load.random_batch();
    MemoryHistory& history = load.history();
    MemoryDisk plain_disk = data_directory();
    Bench plain({}, plain_disk);
    run(plain, history, 0, 0);

    std::map<std::uint64_t, std::vector<std::byte>> files;
    for (const auto& [executors, pages] : {std::pair{1U, 64U}, {1U, 1U}, {2U, 1U}, {4U, 3U}, {3U, 16U}}) {
      CAPTURE(executors);
      MemoryDisk disk = data_directory();
      Bench bench({.executors = executors, .pages_per_turn = pages}, disk);
      run(bench, history, 0, 12);
      CHECK(bench.end() == plain.end());
      CHECK(bench.checkpoints() == plain.checkpoints());
      CHECK(bench.agent().metrics().abandoned_total.value() == 0);
      CHECK(bench.files().size() >= 8);
      if (files.empty()) files = bench.files();
      CHECK(bench.files() == files);
      CHECK(list_snapshots(disk, directory)->size() == 2);
    }
    for (const auto& [index, bytes] : files) {
      CAPTURE(index);
      for (const std::uint32_t executors : {1U, 2U, 4U}) {
        MemoryDisk disk = data_directory();
        disk.put(directory + "/" + snapshot_name(index), bytes);
        Bench restored({.executors = executors, .from = index}, disk);
        run(restored, history, index, executors == 2 ? 12 : 0);
        if (index < history.size()) CHECK(restored.end() == plain.end());
        CHECK(restored.next_due_ns() == plain.next_due_ns());
        for (const auto& [later, expected] : restored.files()) {
          const auto same = files.find(later);
          if (same != files.end()) CHECK(same->second == expected);
        }
      }
    }
  }
}

TEST_CASE("a snapshot for which the quota does not suffice is abandoned, and the next one is taken") {
  for (const std::uint32_t executors : {1U, 3U}) {
    CAPTURE(executors);
    Workload load(7);
    for (std::size_t i = 0; i < batches; ++i) load.random_batch();
    MemoryDisk plain_disk = data_directory();
    Bench plain({}, plain_disk);
    run(plain, load.history(), 0, 0);
    MemoryDisk disk = data_directory();
    Bench bench({.executors = executors, .pages_per_turn = 1, .quota_bytes = 4096}, disk);
    run(bench, load.history(), 0, 12);
    CHECK(bench.agent().metrics().abandoned_total.value() > 3);
    CHECK(bench.agent().answer().failure.find("quota_bytes") != std::string::npos);
    CHECK(bench.end() == plain.end());
    // Without load it suffices; the checkpoint comes with the batches of another round.
    bench.ask();
    for (int i = 0; i < 20 && bench.control().wanted.load(); ++i) bench.run(load.random_batch());
    bench.settle();
    CHECK(bench.agent().answer().failure.empty());
    CHECK(bench.files().size() >= 1);
    CHECK(list_snapshots(disk, directory)->size() == std::min<std::size_t>(bench.files().size(), 2));
  }
}

TEST_CASE("a disk that fails ends the snapshot and leaves the executors as they are") {
  Workload load(8);
  for (std::size_t i = 0; i < batches; ++i) load.random_batch();
  MemoryDisk plain_disk = data_directory();
  Bench plain({}, plain_disk);
  run(plain, load.history(), 0, 0);
  for (std::uint64_t at = 1; at <= 7; ++at) {
    CAPTURE(at);
    MemoryDisk disk = data_directory();
    Bench bench({.executors = 2}, disk);
    for (std::size_t i = 0; i < 40; ++i) bench.run(load.history().batch(i));
    bench.ask();
    disk.fail_at(at, MemoryDisk::Fault::error, ENOSPC);
    run(bench, load.history(), 40, 0);
    const auto answer = bench.agent().answer();
    CHECK(answer.done == 1);
    CHECK(bench.agent().metrics().taken_total.value() + bench.agent().metrics().abandoned_total.value() == 1);
    CHECK(bench.end() == plain.end());
  }
}

}  // namespace
}  // namespace lockstep
