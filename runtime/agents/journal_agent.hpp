// SPDX-License-Identifier: Apache-2.0
#pragma once

/// JournalAgent: carries sealed batches from the pool to the journal, and says when they are committed: durable,
/// written, or sealed, as the node's durability has it. After a failed write or sync it stops for good: nothing is
/// committed any more, and failure() tells the node why.
///
/// One thread, the one that owns the journal's Disk; failed() may be asked by any.

#include <atomic>
#include <cstdint>

#include "journal/writer.hpp"
#include "runtime/agents/agent.hpp"
#include "runtime/agents/batch_pool.hpp"
#include "runtime/agents/snapshot_control.hpp"
#include "runtime/config.hpp"

namespace lockstep {

class JournalAgent final : public Agent {
 public:
  /// The pool's cursors stand at the writer's last batch. Both outlive the agent.
  JournalAgent(JournalWriter& writer, BatchPool& pool, Durability durability, SnapshotControl* snapshots = nullptr)
      : writer_(writer),
        pool_(pool),
        durability_(durability),
        snapshots_(snapshots),
        appended_(writer.appended_index()) {}

  [[nodiscard]] std::string_view name() const override { return "journal"; }
  int do_work(const Now& now) override;
  [[nodiscard]] std::int64_t deadline_ns() const override { return writer_.deadline_ns(); }

  /// There is no space for the next segment: clients are held back until there is.
  [[nodiscard]] bool lacks_space() const { return lacks_space_.load(std::memory_order_relaxed); }
  [[nodiscard]] bool failed() const { return failed_.load(std::memory_order_acquire); }
  /// Why; once failed() has been seen.
  [[nodiscard]] const Error& failure() const { return *writer_.failure(); }

 private:
  int publish();
  void watch_space();
  int store_snapshots();

  JournalWriter& writer_;
  BatchPool& pool_;
  Durability durability_;
  SnapshotControl* snapshots_;
  std::uint64_t stored_ = 0;  // the snapshot that was last handed to the writer
  std::uint64_t appended_;
  std::atomic<bool> lacks_space_{false};  // a sign for people, so relaxed
  std::atomic<bool> failed_{false};  // release in do_work, acquire in failed(): who sees it sees the writer's failure
};

}  // namespace lockstep
