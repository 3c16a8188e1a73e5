// SPDX-License-Identifier: Apache-2.0
#pragma once

/// run_history: executes a journal's batches from the first on, or from the one behind a snapshot, as a restart and a
/// replay do, on the executors of an Execution: each on a thread of its own, or all on the caller's. The result is the
/// same by the one law; tests hold it to that.
///
/// Called by one thread, which reads the journal meanwhile; nobody else may touch the Execution until it returns.

#include <cstdint>
#include <functional>
#include <optional>

#include "base/clock.hpp"
#include "base/error.hpp"
#include "journal/reader.hpp"
#include "runtime/agents/checkpoint.hpp"
#include "runtime/execution.hpp"

namespace lockstep {

struct HistoryRunOptions {
  bool own_threads = true;            ///< one thread an executor; else all on the caller's
  HistoryPosition from;               ///< where the Execution stands; zeroes: before batch 1
  std::uint64_t stop_before_seq = 0;  ///< ends before the batch that holds this seq; 0: at the journal's end
  std::uint32_t perimeters = 0;       ///< of the Execution: whose replies are thrown away
  /// Each checkpoint in order; an Error ends the run with it. May be empty.
  std::function<Result<void>(const Checkpoint&)> on_checkpoint;
  /// Called now and then with the last seq handed to the executors; false ends the run with ErrorCode::incomplete. May
  /// be empty.
  std::function<bool(std::uint64_t)> on_progress;
};

struct HistoryRun {
  HistoryPosition end;              ///< zeroes when there was no batch
  BatchHeader last;                 ///< header of the last batch
  Checkpoint final_state;           ///< after it, checkpoint or not
  std::uint64_t journal_bytes = 0;  ///< that the batches take in a journal
  std::uint64_t checkpoints = 0;
  std::uint64_t handlers = 0;
  std::uint64_t traps = 0;
};

/// The journal's genesis record, without disturbing its reader: opens one of its own. Nothing for an empty journal.
[[nodiscard]] Result<std::optional<Genesis>> read_genesis(Disk& disk, const std::string& directory);

/// `reader` stands behind `options.from`, and so does the Execution.
[[nodiscard]] Result<HistoryRun> run_history(JournalReader& reader, Execution& execution, Clock& clock,
                                             const HistoryRunOptions& options);

}  // namespace lockstep
