// SPDX-License-Identifier: Apache-2.0
#pragma once

/// Recovery: takes a data directory over for this process and establishes where its history ends. It locks, waits for
/// writes that a killed process left in flight, makes what is on disk durable before judging it, judges every segment,
/// and only when there is one verdict for all changes anything: it seals the last segment behind the last good batch,
/// gives the process its incarnation, and removes what was pruned or made ahead. A history that was pruned begins with
/// the oldest segment the hard state names, at the position its first block states.
///
/// A tail torn by a crash is cut. What the hard state or the hash log knows as durable must be there. Damage that may
/// have been acknowledged refuses the start, naming file, offset and batch, and leaves every file as it was. An empty
/// or missing directory becomes a new journal. One thread, blocking.

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "journal/directory_lock.hpp"
#include "journal/disk.hpp"
#include "journal/format.hpp"
#include "journal/holes.hpp"
#include "journal/upkeep.hpp"
#include "journal/verdict.hpp"

namespace lockstep {

struct RecoveryOptions {
  std::string directory;
  /// Whose journal it must be. Of a new journal: its id; drawn at random when none is given.
  std::optional<ClusterId> cluster_id = std::nullopt;
  std::optional<std::uint64_t> replica_id = std::nullopt;  ///< 0 for a new journal when none is given
  bool create = true;                                      ///< an empty directory becomes a journal; else it is refused
  bool accept_tail = false;  ///< an operator's word to cut an ambiguous tail (a copy stays beside it as *.bad)
  /// A member of a cluster is not refused for damage, since others have copies. An ambiguous tail is cut (a copy stays)
  /// and the hard state goes to limbo; of acknowledged damage nothing is changed, the hard state goes to repairing, and
  /// the result names the holes to be filled. Neither is ever left here: JournalWriter::leave_limbo().
  bool cluster = false;
  /// Asked when the verdict lets the start go on, before anything is changed; its Error refuses the start.
  std::function<Result<void>()> consent = {};
  std::uint64_t seed = 0;  ///< of what is drawn at random here; 0 asks the system
};

struct Recovered {
  DirectoryLock lock;
  HardStateFile hard_state;  ///< cluster, replica and this process' incarnation are in its value()
  std::string directory;
  bool created = false;  ///< the directory held no journal before
  HistoryPosition position;
  std::uint64_t last_segment_id = 0;  ///< 0 when there is none
  std::uint64_t last_nonce = 0;
  std::vector<std::uint64_t> schema_ids;
  std::vector<SegmentStart> segments;  ///< those with blocks
  std::vector<Hole> holes;  ///< of a member that repairs: fill_hole() them, then recover again to open a writer
  std::uint64_t seed = 0;   ///< for what the writer draws
};

/// `findings`, when given, receives each verdict that was not "clean", whether the start was refused or not.
[[nodiscard]] Result<Recovered> recover(Disk& disk, const RecoveryOptions& options,
                                        std::vector<Finding>* findings = nullptr);

}  // namespace lockstep
