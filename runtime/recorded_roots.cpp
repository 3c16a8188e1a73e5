// SPDX-License-Identifier: Apache-2.0
#include "runtime/recorded_roots.hpp"

#include <fmt/format.h>

namespace lockstep {

Result<void> RecordedRoots::begin_at(const Checkpoint& restored) {
  while (next_ < content_.entries.size() && content_.entries[next_].index < restored.batch) ++next_;
  return compare_end(restored);
}

Result<void> RecordedRoots::compare(const Checkpoint& now) {
  if (auto passed = pass(now.batch); !passed) return passed;
  if (next_ == content_.entries.size()) {
    ++not_recorded_;
    return {};
  }
  const HashEntry& then = content_.entries[next_];
  if (then.index == now.batch) return compare_entry(then, now);
  if (then.kind == HashKind::resumed) {  // the run that recorded it did not see this one
    ++not_recorded_;
    return {};
  }
  return fail(ErrorCode::diverged,
              fmt::format("the histories differ: batch {} ends in a checkpoint now, but the recorded run passed it "
                          "without one; {}",
                          now.batch, last_equal()));
}

Result<void> RecordedRoots::compare_end(const Checkpoint& now) {
  if (auto passed = pass(now.batch); !passed) return passed;
  if (next_ == content_.entries.size() || content_.entries[next_].index != now.batch) return {};
  return compare_entry(content_.entries[next_], now);
}

/// Moves to the first entry at or behind `batch`. A stop left entries that no later run takes; a checkpoint it must
/// take.
Result<void> RecordedRoots::pass(std::uint64_t batch) {
  for (; next_ < content_.entries.size() && content_.entries[next_].index < batch; ++next_) {
    const HashEntry& then = content_.entries[next_];
    if (then.kind == HashKind::checkpoint && then.index > last_equal_batch_)
      return fail(ErrorCode::diverged,
                  fmt::format("the histories differ: batch {} ended in a checkpoint when it was recorded, and does not "
                              "now; {}",
                              then.index, last_equal()));
  }
  return {};
}

Result<void> RecordedRoots::compare_entry(const HashEntry& then, const Checkpoint& now) {
  ++compared_;
  if (then.state_root == now.root && then.effects == now.effects && then.chain == now.chain) {
    last_equal_batch_ = now.batch;
    return {};
  }
  return fail(
      ErrorCode::diverged,
      fmt::format("batch {} (seq {}) differs: recorded root {} effects {} chain {}, now root {} effects {} chain "
                  "{}; {}",
                  now.batch, now.seq, then.state_root.short_hex(), then.effects.short_hex(), then.chain.short_hex(),
                  now.root.short_hex(), now.effects.short_hex(), now.chain.short_hex(), last_equal()));
}

std::string RecordedRoots::last_equal() const {
  return last_equal_batch_ == 0 ? std::string("no checkpoint was equal")
                                : fmt::format("the last equal checkpoint is batch {}", last_equal_batch_);
}

}  // namespace lockstep
