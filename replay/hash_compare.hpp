// SPDX-License-Identifier: Apache-2.0
#pragma once

/// Comparing the state of nodes: each side is a running node's admin address or a data directory, and gives the roots
/// it took; the verdict is drawn at the last batch that all sides have. A side that cannot answer makes the comparison
/// incomplete, which is never "equal"; so does one that has lost a part of what it recorded. Sides of two histories
/// (another cluster, another program, another genesis) are not compared at all.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "runtime/agents/checkpoint.hpp"
#include "runtime/hash_page.hpp"

namespace lockstep {

/// One side of a comparison: its checkpoints in batch order, or why there are none.
struct HashSide {
  std::string name;
  std::vector<Checkpoint> checkpoints;
  std::vector<std::uint64_t> closing;  ///< which of them are no checkpoints, but where a node was stopped; ascending
  std::optional<Error> error;
  std::string lost = {};                  ///< what of its record could not be read, in words; empty: nothing
  std::optional<HashOrigin> origin = {};  ///< which history it is of, as far as it says; also beside an error
};

struct HashVerdict {
  enum class Kind { equal, diverged, incomplete, incompatible };
  Kind kind = Kind::incomplete;
  std::uint64_t batch = 0;                    ///< where it was drawn: the last batch that every answering side has
  std::vector<std::optional<Checkpoint>> at;  ///< per side, its checkpoint there
  std::vector<std::size_t> group;             ///< per answering side: equal numbers, equal bits; 0 is the largest group
  std::uint64_t last_equal_batch = 0;         ///< diverged: the last common batch at which all were equal; 0 for none
  std::uint64_t first_different_batch = 0;    ///< diverged: the first common batch at which they were not
  std::string reason;                         ///< incomplete: why; incompatible: which sides, and what of them
};

/// Draws the verdict. With `at_batch`, at that batch instead of the last common one.
[[nodiscard]] HashVerdict compare_hashes(const std::vector<HashSide>& sides, std::optional<std::uint64_t> at_batch);

/// Asks a side: "HOST:PORT" is an admin address, anything else a data directory.
[[nodiscard]] HashSide load_hash_side(const std::string& name, int timeout_ms);

}  // namespace lockstep
