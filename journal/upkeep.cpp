// SPDX-License-Identifier: Apache-2.0
#include "journal/upkeep.hpp"

#include <algorithm>
#include <utility>

#include "journal/directory.hpp"

namespace lockstep {

JournalUpkeep::JournalUpkeep(HardStateFile&& hard_state, std::string directory, std::vector<SegmentStart> segments)
    : hard_state_(std::move(hard_state)),
      directory_(std::move(directory)),
      state_(hard_state_.value()),
      segments_(std::move(segments)) {}

bool JournalUpkeep::due(std::uint64_t durable_index) const {
  return keep_from_index_ || wanted_normal_ || wanted_truncates_ ||
         (wanted_mark_ && wanted_mark_->index <= durable_index);
}

HardState JournalUpkeep::next_state(std::uint64_t newest_segment_id, std::uint64_t durable_index,
                                    const Digest& durable_chain) const {
  HardState next = state_;
  next.newest_segment_id = newest_segment_id;
  next.durable_index = durable_index;
  next.durable_chain = durable_chain;
  if (wanted_mark_ && wanted_mark_->index <= durable_index) {
    next.snapshot_index = wanted_mark_->index;
    next.snapshot_term = wanted_mark_->term;
    next.snapshot_chain = wanted_mark_->chain;
    next.snapshot_digest = wanted_mark_->digest;
    next.previous_snapshot_index = wanted_mark_->previous_index;
  }
  if (wanted_truncates_) next.flags |= hard_state_has_truncates;
  if (wanted_normal_) next.recovery_state = RecoveryState::normal, next.limbo_index = 0;
  return next;
}

void JournalUpkeep::stored(const HardState& next) {
  state_ = next;
  if (wanted_mark_ && wanted_mark_->index == next.snapshot_index) wanted_mark_.reset();
  if (next.recovery_state == RecoveryState::normal) wanted_normal_ = false;
  if ((next.flags & hard_state_has_truncates) != 0) wanted_truncates_ = false;
  std::erase_if(segments_, [&](const SegmentStart& segment) { return segment.segment_id < next.oldest_segment_id; });
}

std::uint64_t JournalUpkeep::oldest_wanted(const HardState& next) const {
  const std::uint64_t behind_previous = next.previous_snapshot_index + (next.previous_snapshot_index != 0 ? 1 : 0);
  const std::uint64_t keep_from = std::min({*keep_from_index_, behind_previous, next.durable_index});
  std::uint64_t oldest = next.oldest_segment_id;
  for (const SegmentStart& segment : segments_)
    if (segment.first_index <= keep_from) oldest = std::max(oldest, segment.segment_id);
  return oldest;
}

void JournalUpkeep::begin(const HardState& next) {
  next_ = next;
  if (keep_from_index_) next_.oldest_segment_id = oldest_wanted(next);
  keep_from_index_.reset();
  fatal_.reset();
}

Result<void> JournalUpkeep::run(Disk& disk) {
  if (auto stored = hard_state_.store(next_); !stored) {
    fatal_ = Error{ErrorCode::io, stored.error().message};
    return stored;
  }
  Result<void> result;
  for (std::uint64_t id = state_.oldest_segment_id; id < next_.oldest_segment_id; ++id)
    if (auto removed = disk.remove(directory_ + "/" + segment_name(id)); !removed) result = removed;
  if (auto synced = disk.sync_directory(directory_); !synced) fatal_ = synced.error(), result = synced;
  return result;
}

std::optional<Error> JournalUpkeep::finish() {
  if (!fatal_) stored(next_);
  return std::exchange(fatal_, std::nullopt);
}

}  // namespace lockstep
