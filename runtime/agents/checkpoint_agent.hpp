// SPDX-License-Identifier: Apache-2.0
#pragma once

/// CheckpointAgent: takes checkpoints off the board as the executors complete them, writes each to the hash log, and
/// keeps the most recent ones for those who compare nodes. One thread; recent() and find() are for any.

#include <deque>
#include <mutex>
#include <optional>
#include <vector>

#include "base/error.hpp"
#include "journal/hash_log.hpp"
#include "journal/snapshot_format.hpp"
#include "runtime/agents/agent.hpp"
#include "runtime/agents/checkpoint.hpp"

namespace lockstep {

/// A checkpoint as the hash log keeps it, and back. `durable`: the journal is, on this disk, up to its batch.
[[nodiscard]] HashEntry hash_entry(const Checkpoint& checkpoint, HashKind kind, bool durable);
[[nodiscard]] Checkpoint checkpoint_of(const HashEntry& entry);
/// What a snapshot says of where it was taken.
[[nodiscard]] Checkpoint checkpoint_of(const SnapshotHeader& header);

class CheckpointAgent final : public Agent {
 public:
  /// How many checkpoints recent() goes back.
  static constexpr std::size_t kept = 1024;

  /// `executed_is_durable`: a batch is executed only when the journal is durable up to it.
  CheckpointAgent(CheckpointBoard& board, HashLog& log, bool executed_is_durable)
      : board_(board), log_(log), executed_is_durable_(executed_is_durable) {}

  [[nodiscard]] std::string_view name() const override { return "checkpoints"; }
  int do_work(const Now& now) override;

  /// Remembers one that was taken before the agent ran: while history was executed again.
  void remember(const Checkpoint& checkpoint);

  /// The log lacks checkpoints since an append failed: nothing may be appended behind the gap. Of the agent's thread.
  [[nodiscard]] bool log_failed() const { return log_failed_; }

  [[nodiscard]] std::vector<Checkpoint> recent() const;
  /// The checkpoint at the end of a batch, among the recent ones.
  [[nodiscard]] std::optional<Checkpoint> find(std::uint64_t batch) const;

 private:
  CheckpointBoard& board_;
  HashLog& log_;
  bool executed_is_durable_;
  bool log_failed_ = false;
  mutable std::mutex mutex_;  // taken once a checkpoint, and by readers
  std::deque<Checkpoint> recent_;
};

}  // namespace lockstep
