// SPDX-License-Identifier: Apache-2.0
#pragma once

/// The page of checkpoints that a node serves at GET /hash, so that others can compare, and of which history they are:
/// those of two histories are not to be compared. Pure functions; any thread.

#include <cstdint>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "journal/format.hpp"
#include "runtime/agents/checkpoint.hpp"

namespace lockstep {

/// Which history checkpoints are of. Two builds of one program have the same.
struct HashOrigin {
  ClusterId cluster;
  std::uint64_t application = 0;  ///< Application::digest(); 0: not known, there is no history yet
  Digest genesis;                 ///< genesis_digest(); zero: not known
  friend bool operator==(const HashOrigin&, const HashOrigin&) = default;
};

struct HashPage {
  HashOrigin origin;
  std::vector<Checkpoint> checkpoints;  ///< a node's most recent ones, in batch order
};

/// JSON with schema lockstep.hash/2.
[[nodiscard]] std::string print_hash_page(const HashPage& page);

/// print_hash_page() read back. Anything missing, misspelt or out of order is an Error, never a shorter list.
[[nodiscard]] Result<HashPage> parse_hash_page(const std::string& body);

}  // namespace lockstep
