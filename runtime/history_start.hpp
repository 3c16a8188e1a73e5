// SPDX-License-Identifier: Apache-2.0
#pragma once

/// HistoryStart: where executing a data directory's history begins: at its first batch, or with a snapshot and the
/// batch behind it. A restart takes the newest snapshot, since it wants to be quick; a replay the first batch if the
/// journal still has it, else the oldest snapshot, since it wants to see as much as there is.
///
/// Blocking calls; one thread. Reads only.

#include <memory>
#include <optional>
#include <string>

#include "base/error.hpp"
#include "journal/reader.hpp"
#include "journal/snapshots.hpp"
#include "runtime/agents/genesis.hpp"
#include "runtime/execution.hpp"

namespace lockstep {

struct HistoryStart {
  std::optional<Genesis> genesis;  ///< nothing: there is no history yet
  std::optional<SnapshotReader> snapshot;
  HistoryPosition position;  ///< behind the snapshot; zeroes without one

  /// The executors at that position. `options.last_index` is set here.
  [[nodiscard]] Result<std::unique_ptr<Execution>> execution(const Application& application, const Genesis& of,
                                                             Execution::Options options);
};

enum class StartFrom { newest_snapshot, earliest };

/// For a directory that recover() has judged, or that is not to be changed. Damaged snapshots are logged and passed
/// over.
[[nodiscard]] Result<HistoryStart> find_history_start(Disk& disk, const std::string& directory, StartFrom from);

}  // namespace lockstep
