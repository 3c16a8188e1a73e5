// SPDX-License-Identifier: Apache-2.0
#pragma once

/// SnapshotControl: what the SnapshotAgent, the sequencer, the executors and the journal tell each other about
/// snapshots; a few words in memory. At most one snapshot is under way.
///
///     agent ──wanted──▶ sequencer ──flag of a batch──▶ executors ══swept pages══▶ agent ──published──▶ journal
///       ◀─────────────────────────── abandoned ───────────▶                          ◀────stored─────────
///
/// Each member names who writes it; the others read.

#include <atomic>
#include <cstdint>

#include "journal/upkeep.hpp"
#include "runtime/agents/cursor.hpp"

namespace lockstep {

struct SnapshotControl {
  /// Set by the agent; cleared by the sequencer as it flags a batch. Release and acquire: who sees it set sees
  /// `abandoned` cleared.
  alignas(128) std::atomic<bool> wanted{false};
  /// Set by an executor out of quota or by the agent: everybody lets go of the snapshot under way. Cleared by the agent
  /// when all have. Nothing is read by it, so it is relaxed.
  std::atomic<bool> abandoned{false};
  /// Bytes that sealed batches take in the journal, since the node started. The sequencer's.
  alignas(128) std::atomic<std::uint64_t> sealed_bytes{0};

  /// The agent's: `published` moves to a snapshot's index once its file is durable and `mark` and `keep_from_index`
  /// (the first batch the journal has to keep) are of it. The journal's: `stored` follows once the hard state names
  /// the snapshot; until then `mark` does not change.
  Cursor published;
  Cursor stored;
  SnapshotMark mark;
  std::uint64_t keep_from_index = 0;
};

}  // namespace lockstep
