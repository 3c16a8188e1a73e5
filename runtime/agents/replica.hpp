// SPDX-License-Identifier: Apache-2.0
#pragma once

/// Replica: the production executors over one history, all on the calling thread: what replay, the test kit and tests
/// run. It steps them in turn, so N executors take N times the turns of one, not less time.
///
/// One thread. Needs no clock and does no I/O.

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "journal/batch.hpp"
#include "lockstep/application.hpp"
#include "runtime/agents/checkpoint.hpp"
#include "runtime/agents/executor.hpp"
#include "runtime/agents/genesis.hpp"
#include "runtime/agents/mail.hpp"

namespace lockstep {

class Replica {
 public:
  struct Options {
    std::uint32_t executors = 1;
    std::size_t mail_ring_bytes = 0;  ///< 0: four times the longest message
    ByteRing* replies = nullptr;      ///< ReplyFrames; null: dropped
    ByteRing* queries = nullptr;      ///< QueryFrames; one executor only
    LogSink* log = nullptr;           ///< where Context::log goes; null: nowhere
  };

  Replica(const Application& application, const Genesis& genesis, const Options& options);

  /// Runs one batch to its end. While a ring of replies is full it calls `drain`, which must make room.
  template <class Drain>
  void run(const BatchView& batch, Drain&& drain) {
    while (!turn(batch)) drain();
  }
  /// As above, for replicas without replies.
  void run(const BatchView& batch) {
    run(batch, [] {});
  }

  /// Answers the queries that wait; returns how many.
  int answer_queries();

  /// The checkpoints reached so far, in order.
  [[nodiscard]] const std::vector<Checkpoint>& checkpoints() const { return checkpoints_; }
  /// What all comes to after the last batch, whether or not it is a checkpoint.
  [[nodiscard]] Checkpoint end();
  /// When the replica wants time to pass; as NextDue.
  [[nodiscard]] std::int64_t next_due_ns() const;

 private:
  [[nodiscard]] bool turn(const BatchView& batch);

  std::uint32_t shards_;
  Digest genesis_;
  std::optional<MailRings> mail_;
  CheckpointBoard board_;
  std::vector<NextDue> due_;
  std::vector<std::unique_ptr<Executor>> executors_;
  std::vector<bool> done_;
  BatchHeader last_;
  std::vector<Checkpoint> checkpoints_;
};

}  // namespace lockstep
