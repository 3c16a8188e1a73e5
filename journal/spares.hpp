// SPDX-License-Identifier: Apache-2.0
#pragma once

/// Segments made ahead that are damaged or gone: whether that is a loss. A segment's first block is submitted only when
/// the hard state names the segment and the SEAL of the one before is durable. So behind a segment that ends without a
/// SEAL, and beyond what the hard state names, nothing was ever acknowledged, and a start makes them anew. Behind a
/// SEAL only the file itself can tell. Reads only.

#include <optional>
#include <string>
#include <vector>

#include "journal/block_stream.hpp"
#include "journal/hard_state.hpp"
#include "journal/verdict.hpp"

namespace lockstep {

struct SpareFlaw {
  std::uint64_t segment_id = 0;
  std::string file;
  std::string cause;
  /// The verdict when the segment may have been used: torn when its file shows by itself that it was not.
  TailClass if_used = TailClass::corrupt;
};

/// What is wrong with an opened segment that holds no trace of a block; nothing when it is as it was made.
[[nodiscard]] std::optional<SpareFlaw> flaw_of_spare(const BlockStream& segment, std::uint64_t id,
                                                     const HardState& state);
/// The same for one that is not there.
[[nodiscard]] SpareFlaw missing_spare(const std::string& directory, std::uint64_t id, const HardState& state);

/// `last` is where the history ends, in a segment without a SEAL when `unsealed`.
[[nodiscard]] Finding judge_spare(const SpareFlaw& flaw, const HardState& state, const HistoryPosition& last,
                                  bool unsealed);

}  // namespace lockstep
