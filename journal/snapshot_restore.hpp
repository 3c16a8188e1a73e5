// SPDX-License-Identifier: Apache-2.0
#pragma once

/// Makes a data directory out of a snapshot: one that a node starts from, with the snapshot's state as its past. Its
/// journal is a sealed segment without batches that says where the history stands; or the segments of another
/// directory's journal, from the one that holds the batch behind the snapshot on. Its hash log begins with the
/// snapshot's roots, and goes on with what the other directory recorded behind it. The hard state is written last, when
/// all else is durable, so what a crash leaves half made is no data directory, and a start refuses it; what an error
/// leaves is removed, the directories that were made for it too. Both directories are locked meanwhile.
///
/// Blocking calls; one thread.

#include <optional>
#include <string>

#include "base/error.hpp"
#include "journal/disk.hpp"
#include "journal/snapshot_format.hpp"

namespace lockstep {

struct SnapshotRestore {
  std::string snapshot;                ///< its file
  std::string directory;               ///< must be missing or empty
  std::optional<std::string> journal;  ///< a stopped node's data directory
};

/// The snapshot's header. Refuses one that does not verify, and a journal that does not go on from it.
[[nodiscard]] Result<SnapshotHeader> restore_directory(Disk& disk, const SnapshotRestore& restore);

}  // namespace lockstep
