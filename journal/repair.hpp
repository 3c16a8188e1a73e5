// SPDX-License-Identifier: Apache-2.0
#pragma once

/// Repair: makes a damaged journal whole again, one segment at a time: the segment is written anew from its sound
/// blocks and what fills its hole, made durable beside the damaged one, which is first copied to *.bad, and takes its
/// name in one step. So a crash at any step leaves the damaged journal or the repaired one, and repairing again goes on
/// from there. What fills a hole must match it: batch by batch the chain, and at its end the chain of what is behind.
///
/// The caller holds the directory's lock, and no process writes to it. One thread, blocking.

#include <span>
#include <string>
#include <vector>

#include "journal/batch.hpp"
#include "journal/holes.hpp"
#include "journal/verdict.hpp"

namespace lockstep {

/// Writes the hole's segment anew with `batches` in it, which begin with the first missing one, and says how many of
/// them it had room for: the others belong to the segments behind, whose hole find_holes() shows then. None for a hole
/// that lacks none. Refuses a batch that does not belong there (ErrorCode::diverged) and changes nothing then.
[[nodiscard]] Result<std::size_t> fill_hole(Disk& disk, const std::string& directory, const Hole& hole,
                                            std::span<const BatchView> batches);

/// One line: "seg-…: batches 17 to 19 are missing: …".
[[nodiscard]] std::string describe(const Hole& hole);

struct RepairReport {
  std::vector<std::string> done;  ///< what was changed, one line each
  std::vector<Hole> left;         ///< what only a copy of the data fills
};

/// What can be done without other copies of the data: writes anew the segments that have lost only what can be derived,
/// and, on an operator's word, cuts a tail of which it cannot be told whether it was acknowledged. Takes the locks of
/// the directory itself. A journal that needs nothing is left as it is.
[[nodiscard]] Result<RepairReport> repair_journal(Disk& disk, const std::string& directory, bool accept_tail);

}  // namespace lockstep
