// SPDX-License-Identifier: Apache-2.0
#pragma once

/// The procedures of a journal whose every step a campaign crashes: a table of what to prepare, what to do with a fault
/// lying in wait, and what must hold afterwards. A new procedure is one more row.

#include <memory>
#include <span>
#include <string>

#include "journal/testing/journal_run.hpp"
#include "tests/faults/promises.hpp"

namespace lockstep::faults {

struct Situation {
  explicit Situation(std::uint64_t seed) : disk(seed) {}

  MemoryDisk disk;
  Owed owed;
  std::unique_ptr<JournalRun> run;  ///< of the process that is about to be hit
  std::vector<std::byte> damaged;   ///< a file as it was before it was cut or repaired
  std::uint64_t snapshot = 0;       ///< the batch of the newest one that its maker was told of
  bool done = false;                ///< whoever asked was told that all is done
  std::uint64_t entries = 0;        ///< of the hash log, appended
  std::uint64_t entries_synced = 0;

  /// Starts a process on the directory.
  bool start(std::uint64_t seed);
  /// Appends batches until they are durable, or the process is hit; false then.
  bool append(int batches);
  /// Polls until nothing more is to be done.
  void poll_for_a_while();
};

struct Scenario {
  const char* name;
  bool (*prepare)(Situation&);
  /// Runs until it is done or the fault has ended it.
  void (*act)(Situation&);
  /// What must hold on a disk that was left behind.
  Result<std::string> (*check)(const Situation&, MemoryDisk& left);
};

/// Of the journal, its hard state and the hash log beside it.
[[nodiscard]] std::span<const Scenario> journal_scenarios();
/// Of snapshots, and of directories that are made of others.
[[nodiscard]] std::span<const Scenario> snapshot_scenarios();

}  // namespace lockstep::faults
