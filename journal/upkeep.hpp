// SPDX-License-Identifier: Apache-2.0
#pragma once

/// JournalUpkeep: what a live journal changes beside appending: its hard state, and which segments it still keeps. It
/// owns the hard state, so that there is one place that stores it, one store at a time. Wishes are taken at any time;
/// begin() makes one piece of work of all that are due, run() does it in the background, finish() takes its result in.
///
/// A segment is removed only when the hard state no longer names it, so a crash at any step leaves a journal that
/// starts, and files below the oldest named one, which the next start removes. What is kept always reaches back to the
/// batch behind the previous snapshot, and holds at least one durable batch, so that it says itself where it begins.
///
/// The writer's thread, but for run() and store(), which a background task of that writer calls; never two at once.

#include <optional>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "journal/hard_state.hpp"

namespace lockstep {

/// The snapshots a node could start from, as its hard state names them.
struct SnapshotMark {
  std::uint64_t index = 0;  ///< of the newest: the batch at whose end it was taken
  std::uint64_t term = 0;
  Digest chain;                      ///< the journal's, at `index`
  Digest digest;                     ///< of the newest one's file
  std::uint64_t previous_index = 0;  ///< of the one before it; 0 when there is none
};

/// A segment the journal keeps.
struct SegmentStart {
  std::uint64_t segment_id = 0;
  std::uint64_t first_index = 0;  ///< of the first batch in it, or that would be
};

class JournalUpkeep {
 public:
  /// `segments` are those with blocks, ascending.
  JournalUpkeep(HardStateFile&& hard_state, std::string directory, std::vector<SegmentStart> segments);

  /// The hard state as last stored.
  [[nodiscard]] const HardState& state() const { return state_; }
  /// The first batch that is kept.
  [[nodiscard]] std::uint64_t first_index() const { return segments_.empty() ? 1 : segments_.front().first_index; }
  void add_segment(const SegmentStart& segment) { segments_.push_back(segment); }

  /// Due when the journal is durable up to `mark.index`.
  void want_snapshots(const SnapshotMark& mark) { wanted_mark_ = mark; }
  void want_prune(std::uint64_t keep_from_index) { keep_from_index_ = keep_from_index; }
  /// Has the hard state say that there are TRUNCATE blocks, and what is durable now.
  void want_truncates() { wanted_truncates_ = true; }
  void want_normal_state() { wanted_normal_ = true; }
  [[nodiscard]] bool due(std::uint64_t durable_index) const;

  /// The state with what is known now; due snapshots are in it.
  [[nodiscard]] HardState next_state(std::uint64_t newest_segment_id, std::uint64_t durable_index,
                                     const Digest& durable_chain) const;
  [[nodiscard]] Result<void> store(const HardState& next) { return hard_state_.store(next); }
  /// To be called on the writer's thread when store(next) has succeeded.
  void stored(const HardState& next);

  void begin(const HardState& next);
  [[nodiscard]] Result<void> run(Disk& disk);
  /// The error that ends the journal, if run() met one: of a store or a sync. A file that could not be removed is no
  /// reason to stop; the next start tries again.
  [[nodiscard]] std::optional<Error> finish();

 private:
  [[nodiscard]] std::uint64_t oldest_wanted(const HardState& next) const;

  HardStateFile hard_state_;
  std::string directory_;
  HardState state_;
  std::vector<SegmentStart> segments_;
  std::optional<SnapshotMark> wanted_mark_;
  std::optional<std::uint64_t> keep_from_index_;
  bool wanted_normal_ = false;
  bool wanted_truncates_ = false;
  HardState next_;              ///< what run() stores
  std::optional<Error> fatal_;  ///< of run(); read when it has completed
};

}  // namespace lockstep
