// SPDX-License-Identifier: Apache-2.0
#pragma once

/// What a journal owes after whatever happened to it, and the check of it: all that was acknowledged and nothing that
/// was not appended, bit for bit, or a refusal that names the place and changes no file; the same answer when asked
/// again; a remedy that works when it is said to; and a journal that goes on and keeps what is appended then. One
/// thread.

#include <cstdint>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "journal/batch.hpp"
#include "journal/testing/memory_disk.hpp"

namespace lockstep::faults {

inline const std::string data_directory = "data";

struct Owed {
  std::vector<BatchHeader> history;   ///< all that was ever appended, in order
  std::uint64_t acknowledged = 0;     ///< a restart has at least these
  std::uint64_t first_index = 1;      ///< a restart begins at this batch or before it
  std::uint64_t unknown_batches = 0;  ///< that may stand behind `history`, appended by other means
  bool may_refuse = false;            ///< what was done to the disk is no mere crash: a refusal is an answer too
  bool accept_tail = false;           ///< the operator's word is given
  bool thorough = true;               ///< append after the restart and restart once more; look closely at a refusal
};

/// A promise that was not kept.
[[nodiscard]] std::unexpected<Error> broken(std::string what);

/// Starts on the disk as often as it takes. Returns the verdict's name: "clean", "torn", "ambiguous, accepted",
/// "refused: corrupt", "refused: corrupt, repaired", ... (a refusal's remedy is tried when thorough); an Error says
/// what was not kept.
[[nodiscard]] Result<std::string> check_restart(MemoryDisk& disk, const Owed& owed);

/// Reads the whole journal: each batch must be, bit for bit, that of `history` at its index. Returns the last index.
[[nodiscard]] Result<std::uint64_t> read_all(MemoryDisk& disk, const Owed& owed);

}  // namespace lockstep::faults
