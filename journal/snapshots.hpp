// SPDX-License-Identifier: Apache-2.0
#pragma once

/// The snapshots of a data directory: which there are, and which one a start goes on from. That is the newest that
/// verifies whole and that the journal goes on from without a gap; a damaged one is passed over for the one before it,
/// and when there is none left the history is executed from its first batch, if the journal still has it.
///
/// Damage is passed over; a contradiction is refused: a sound snapshot of another cluster, of another history (its
/// chain is not the journal's), or of a batch that the journal does not reach any more. Blocking calls; one thread.

#include <optional>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "journal/disk.hpp"
#include "journal/snapshot_reader.hpp"

namespace lockstep {

/// Batches that have a snapshot, by its file's name, newest first.
[[nodiscard]] Result<std::vector<std::uint64_t>> list_snapshots(Disk& disk, const std::string& directory);

/// Removes what a crash left half made.
[[nodiscard]] Result<void> remove_half_made_snapshots(Disk& disk, const std::string& directory);

/// Removes all but the newest `keep`, and none that is not older than the one of batch `previous_index`: that one, and
/// what a start has passed over since, stay.
[[nodiscard]] Result<void> remove_older_snapshots(Disk& disk, const std::string& directory, std::size_t keep,
                                                  std::uint64_t previous_index);

struct SnapshotChoice {
  std::optional<SnapshotReader> snapshot;  ///< verified, before its first image; nothing: execute from the first batch
  std::vector<std::string> passed_over;    ///< why newer ones were not taken, one line each
};
/// The segments that a history needs to go on from a snapshot, ascending: from the last one that begins at or before
/// the batch behind it. Refused when the journal begins later, ends earlier, or is of another history.
[[nodiscard]] Result<std::vector<std::uint64_t>> journal_goes_on_from(Disk& disk, const std::string& directory,
                                                                      const SnapshotHeader& snapshot);

/// What to go on from if there is a choice.
enum class SnapshotPreference {
  newest,       ///< the least to execute
  first_batch,  ///< no snapshot if the journal begins at its first batch, else the oldest: the most to execute
};
/// For a journal that recover() has judged.
[[nodiscard]] Result<SnapshotChoice> choose_snapshot(Disk& disk, const std::string& directory,
                                                     SnapshotPreference preference = SnapshotPreference::newest);

}  // namespace lockstep
