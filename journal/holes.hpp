// SPDX-License-Identifier: Apache-2.0
#pragma once

/// Holes: what is missing in a damaged journal, as ranges of batches between sound ones, so that it can be asked for
/// from somebody who has it. A hole without a batch in it is damage of what can be derived again: a SEAL, a MARK, a
/// schema, a segment's header. Reads only; for a directory that no process writes to. One thread, blocking.

#include <optional>
#include <string>
#include <vector>

#include "journal/block_stream.hpp"
#include "journal/hard_state.hpp"

namespace lockstep {

struct Hole {
  /// Whether it is the segment's header that is damaged, and what is known of it; the blocks behind are judged by
  /// themselves.
  enum class Header : std::uint8_t {
    sound,
    restored,  ///< bit for bit: only the header is to be written
    derived,   ///< the segment is to be written anew, since its first block names the lost header's checksum
  };

  std::uint64_t segment_id = 0;  ///< the segment that is to be made whole
  HistoryPosition before;        ///< what the first missing batch follows from
  std::uint64_t last_index = 0;  ///< of the last missing batch; at least that when the end is not known
  /// The chain at last_index, as what is behind the hole has it; nothing when the history's end is gone.
  std::optional<Digest> chain;
  std::string cause;
  Header header = Header::sound;

  [[nodiscard]] bool lacks_batches() const { return !chain || last_index > before.index; }
};

/// In order. A tail that was never acknowledged, or may not have been, is no hole: a start judges it.
[[nodiscard]] Result<std::vector<Hole>> find_holes(Disk& disk, const std::string& directory);

}  // namespace lockstep
