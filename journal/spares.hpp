// SPDX-License-Identifier: Apache-2.0
#pragma once

/// Segments made ahead: which they are, and whether it is a loss that one is damaged or gone. A segment's first block
/// is submitted only when the hard state names the segment and the SEAL of the one before is durable. So behind a
/// segment that ends without a SEAL, and beyond what the hard state names, nothing was ever acknowledged whatever the
/// bytes, and a start makes them anew. Behind a SEAL only the file itself can tell. Reads only.

#include <cstdint>
#include <optional>
#include <span>
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

/// How many of the segments `ids`, ascending, are not mere spares: up to the last that holds a block; and one more when
/// that one has its SEAL, or may have had it, and the next holds bytes that may have been blocks.
[[nodiscard]] Result<std::size_t> count_used(Disk& disk, const std::string& directory,
                                             std::span<const std::uint64_t> ids, const HardState& state);

/// What is wrong with an opened segment that was not used; nothing when it is as it was made.
[[nodiscard]] std::optional<SpareFlaw> flaw_of_spare(BlockStream& segment, std::uint64_t id, const HardState& state);
/// The same for one that is not there.
[[nodiscard]] SpareFlaw missing_spare(const std::string& directory, std::uint64_t id, const HardState& state);

/// Where the history ends, as far as segments hold it.
struct UsedEnd {
  std::uint64_t segment_id = 0;  ///< the last one used
  HistoryPosition position;
  bool unsealed = false;  ///< that segment surely has no SEAL
};
/// The flaws of all that is behind.
[[nodiscard]] std::vector<Finding> judge_spares(std::vector<SpareFlaw> flaws, const HardState& state,
                                                const UsedEnd& end);

}  // namespace lockstep
