// SPDX-License-Identifier: Apache-2.0
#pragma once

/// RecordedRoots: the hash log a live run left, held against what the same journal comes to when it is executed again.
/// Where checkpoints are taken is a function of the history, so it is not enough that roots agree where both have one:
/// a checkpoint that was recorded and is not taken now, or is taken now and was passed over then, is a divergence too.
///
/// Ask for the checkpoints in order, then for the end. One thread.

#include <cstdint>
#include <string>

#include "base/error.hpp"
#include "journal/hash_log.hpp"
#include "runtime/agents/checkpoint.hpp"

namespace lockstep {

class RecordedRoots {
 public:
  explicit RecordedRoots(HashLogContent content) : content_(std::move(content)) {}

  /// Before all others, when the execution went on from a snapshot: what it began with.
  [[nodiscard]] Result<void> begin_at(const Checkpoint& restored);
  /// The next checkpoint. ErrorCode::diverged says what differs and where both were last equal; one that the log does
  /// not reach (a crash lost its tail) only counts as not recorded.
  [[nodiscard]] Result<void> compare(const Checkpoint& now);
  /// Where the execution ended, checkpoint or not: compared with the entry there, if there is one.
  [[nodiscard]] Result<void> compare_end(const Checkpoint& now);

  [[nodiscard]] std::uint64_t compared() const { return compared_; }
  [[nodiscard]] std::uint64_t not_recorded() const { return not_recorded_; }
  /// All up to the end of this batch is as it was recorded, since state, effects and chain hold all that was before.
  [[nodiscard]] std::uint64_t last_equal_batch() const { return last_equal_batch_; }

 private:
  [[nodiscard]] Result<void> pass(std::uint64_t batch);
  [[nodiscard]] Result<void> compare_entry(const HashEntry& then, const Checkpoint& now);
  [[nodiscard]] std::string last_equal() const;

  HashLogContent content_;
  std::size_t next_ = 0;  ///< the first entry that has not been passed
  std::uint64_t compared_ = 0;
  std::uint64_t not_recorded_ = 0;
  std::uint64_t last_equal_batch_ = 0;
};

}  // namespace lockstep
