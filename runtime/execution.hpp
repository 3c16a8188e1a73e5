// SPDX-License-Identifier: Apache-2.0
#pragma once

/// Execution: the executors of a node with all that stands between them and the rest: the batch pool they are fed from,
/// mail rings among them, rings of queries and replies to each perimeter, and the board their checkpoints meet on. The
/// same for a live node, for its restart and for a replay on threads; only who fills the pool differs.
///
/// Built and taken apart by one thread; the agents belong to the threads that run them.

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "journal/batch.hpp"
#include "journal/snapshot_reader.hpp"
#include "lockstep/application.hpp"
#include "runtime/agents/batch_pool.hpp"
#include "runtime/agents/checkpoint.hpp"
#include "runtime/agents/executor.hpp"
#include "runtime/agents/executor_agent.hpp"
#include "runtime/agents/genesis.hpp"
#include "runtime/agents/mail.hpp"
#include "runtime/agents/shard_sweep.hpp"
#include "runtime/ring/byte_ring.hpp"

namespace lockstep {

class Execution {
 public:
  struct Options {
    std::uint32_t executors = 1;
    std::uint32_t perimeters = 0;  ///< 0: no replies, no queries
    std::uint32_t slabs = 16;      ///< a power of two
    std::uint32_t max_batch_bytes = 1U << 20;
    std::vector<std::uint64_t> skips = {};  ///< seqs to pass over, ascending (journal/skips.hpp)
    Breadcrumb* breadcrumbs = nullptr;      ///< one an executor
    /// How an executor gives snapshots away; without a quota none can be taken.
    ShardSweep::Options sweep{.quota_bytes = 0};
    std::uint64_t last_index = 0;  ///< the batch whose state restore() will bring; 0: it begins at the first
  };

  /// Whether this host has the memory and the address space, found out without keeping any: for want of it the
  /// constructor ends the process. Errors say how much it would take and what to lower.
  [[nodiscard]] static Result<void> require_room(const Application& application, const Genesis& genesis,
                                                 const Options& options);

  /// `application` outlives it.
  Execution(const Application& application, const Genesis& genesis, const Options& options);
  Execution(const Execution&) = delete;
  Execution& operator=(const Execution&) = delete;

  /// Of a new Execution, for a snapshot that was verified: all executors go on from its state. After an Error this
  /// Execution is of no use.
  [[nodiscard]] Result<void> restore(SnapshotReader& snapshot);

  /// What snapshots are arranged by; null without a quota for them.
  [[nodiscard]] SnapshotControl* snapshots() { return sweeps_.empty() ? nullptr : &snapshots_; }
  [[nodiscard]] ByteRing& swept(std::uint32_t executor) { return sweeps_[executor]->ring(); }

  [[nodiscard]] BatchPool& pool() { return pool_; }
  [[nodiscard]] CheckpointBoard& board() { return board_; }
  [[nodiscard]] std::uint32_t executors() const { return options_.executors; }
  [[nodiscard]] ExecutorAgent& agent(std::uint32_t executor) { return *agents_[executor]; }
  [[nodiscard]] const Executor& executor(std::uint32_t executor) const { return *executors_[executor]; }
  [[nodiscard]] const NextDue& due(std::uint32_t executor) const { return due_[executor]; }
  [[nodiscard]] ByteRing& replies(std::uint32_t executor, std::uint32_t perimeter) {
    return *replies_[executor * options_.perimeters + perimeter];
  }
  [[nodiscard]] ByteRing& queries(std::uint32_t executor, std::uint32_t perimeter) {
    return *queries_[executor * options_.perimeters + perimeter];
  }
  /// Which executor owns an actor.
  [[nodiscard]] std::uint32_t owner(const Address& actor) const {
    return executor_of(home_of(actor, genesis_.shards).shard, options_.executors);
  }

  /// Where Context::log() of an executor's actors goes from here on; null, as at first: nowhere. Only while no executor
  /// works.
  void log_to(std::uint32_t executor, LogSink* sink) { executors_[executor]->log_to(sink); }

  /// Throws away the replies that wait for `perimeter`: of a history that is run again nobody waits for them.
  void discard_replies(std::uint32_t perimeter);

  /// The durable sessions there are, each with the stamp of its last record. Only while no executor works.
  [[nodiscard]] std::map<std::uint64_t, std::int64_t> sessions();

  /// State and effects after the last batch, checkpoint or not. Only while no executor works.
  [[nodiscard]] Checkpoint end(const BatchHeader& last);

 private:
  /// Memory that a new one takes at once: batches, and the rings of executors with perimeters and with each other.
  [[nodiscard]] static std::uint64_t memory_bytes(const Application& application, const Genesis& genesis,
                                                  const Options& options);
  const Application& application_;
  Genesis genesis_;
  Options options_;
  BatchPool pool_;
  CheckpointBoard board_;
  std::optional<MailRings> mail_;  // only where executors send to each other
  std::vector<NextDue> due_;
  std::vector<std::unique_ptr<ByteRing>> replies_;
  std::vector<std::unique_ptr<ByteRing>> queries_;
  SnapshotControl snapshots_;
  std::vector<std::unique_ptr<ShardSweep>> sweeps_;
  std::vector<std::unique_ptr<Executor>> executors_;
  std::vector<std::unique_ptr<ExecutorAgent>> agents_;
};

}  // namespace lockstep
