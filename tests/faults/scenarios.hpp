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
  std::uint64_t entries = 0;        ///< of the hash log, appended
  std::uint64_t entries_synced = 0;

  /// Starts a process on the directory.
  bool start(std::uint64_t seed);
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

[[nodiscard]] std::span<const Scenario> scenarios();

}  // namespace lockstep::faults
