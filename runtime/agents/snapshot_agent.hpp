// SPDX-License-Identifier: Apache-2.0
#pragma once

/// SnapshotAgent: makes snapshots. When the journal has grown by so much, or when somebody asks, it has the sequencer
/// flag the next checkpoint, takes what the executors give away of it, shard by shard in order, writes and verifies the
/// file, and has the journal's hard state name it; only then older snapshots go, and the journal behind them may.
///
///     idle ─▶ asked ─▶ taking ─▶ waiting ─▶ verifying ─▶ storing ─▶ idle
///                        └──────────┴───────────┴─▶ draining (abandoned) ─▶ idle, tried again later
///
/// A failure of its disk, like a shortage of quota, ends the snapshot, never the node: it is counted, logged once, and
/// tried again later. What was written is held against the root of the executors' own checkpoint.
///
/// One thread, which may be one that others share: a turn writes or reads about 1 MiB. ask(), counters and last() are
/// for any thread.

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "journal/retention.hpp"
#include "journal/snapshot_writer.hpp"
#include "runtime/agents/agent.hpp"
#include "runtime/agents/checkpoint_agent.hpp"
#include "runtime/execution.hpp"
#include "runtime/metrics.hpp"

namespace lockstep {

struct SnapshotMetrics {
  Counter taken_total;       ///< stored and named by the hard state
  Counter abandoned_total;   ///< for lack of quota, disk or agreement
  Counter bytes_total;       ///< written into files
  Counter last_index;        ///< of the newest one
  Counter last_duration_ns;  ///< from the request to its being stored
};

class SnapshotAgent final : public Agent {
 public:
  struct Options {
    std::string directory;
    ClusterId cluster_id = {};
    std::vector<std::byte> genesis;  ///< payload of the genesis record
    std::uint32_t shards = 0;
    std::uint64_t every_bytes = 0;           ///< of journal, between two snapshots; 0: only when asked
    std::uint64_t journaled_bytes = 0;       ///< of the journal behind the newest snapshot, at the start
    std::uint64_t newest_index = 0;          ///< of the snapshot that the node started from; 0: none
    std::int64_t retry_ns = 10'000'000'000;  ///< after an abandoned one
    std::size_t keep = 2;                    ///< snapshots, at least 2
    Retention retention = {};
  };

  /// `execution` has a quota for snapshots. All outlive the agent.
  SnapshotAgent(Disk& disk, Execution& execution, const CheckpointAgent& checkpoints, Options options);

  [[nodiscard]] std::string_view name() const override { return "snapshots"; }
  int do_work(const Now& now) override;
  [[nodiscard]] std::int64_t deadline_ns() const override { return deadline_ns_; }

  /// Wants a snapshot at the next checkpoint; returns how many were asked for with this one.
  std::uint64_t ask() { return asked_.fetch_add(1, std::memory_order_relaxed) + 1; }
  /// Of the requests that ask() counts, those that are done with; and why the last one failed, if it did.
  struct Answer {
    std::uint64_t done = 0;
    std::uint64_t last_index = 0;
    std::string failure;
  };
  [[nodiscard]] Answer answer() const;

  [[nodiscard]] const SnapshotMetrics& metrics() const { return metrics_; }

 private:
  enum class Stage : std::uint8_t { idle, asked, taking, waiting, verifying, storing, draining };

  [[nodiscard]] bool is_due(std::int64_t now_ns) const;
  int begin(std::int64_t now_ns);
  [[nodiscard]] Result<int> take();
  [[nodiscard]] Result<bool> take_frame(ByteRing& ring, std::span<const std::byte> bytes);
  [[nodiscard]] Result<int> wait();
  [[nodiscard]] Result<int> verify(std::int64_t real_ns);
  int store(std::int64_t now_ns);
  int drain(std::int64_t now_ns);
  void abandon(const std::string& why);
  void finish(const std::string& failure);
  [[nodiscard]] Result<int> work(const Now& now);

  static constexpr int frames_per_turn = 16;

  Disk& disk_;
  Execution& execution_;
  const CheckpointAgent& checkpoints_;
  Options options_;
  SnapshotControl& control_;
  SnapshotMetrics metrics_;

  Stage stage_ = Stage::idle;
  std::int64_t deadline_ns_ = 0;
  std::int64_t asked_at_ns_ = 0;
  std::int64_t not_before_ns_ = INT64_MIN;
  std::uint64_t next_at_bytes_;  // of control_.sealed_bytes
  std::uint64_t newest_index_;

  // The one under way.
  std::uint64_t answers_ = 0;  // requests that it answers
  std::uint64_t index_ = 0;
  std::optional<Checkpoint> checkpoint_;
  std::optional<SnapshotWriter> writer_;
  std::uint32_t shard_ = 0;
  bool shard_begun_ = false;
  std::vector<bool> ended_;  // by executor
  std::string why_;

  std::atomic<std::uint64_t> asked_{0};
  mutable std::mutex mutex_;  // guards answer_; taken once a snapshot, and by who asks
  Answer answer_;
};

}  // namespace lockstep
