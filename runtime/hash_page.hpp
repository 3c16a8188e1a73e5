// SPDX-License-Identifier: Apache-2.0
#pragma once

/// The page of checkpoints that a node serves at GET /hash, so that others can compare. Pure functions; any thread.

#include <string>
#include <vector>

#include "base/error.hpp"
#include "runtime/agents/checkpoint.hpp"

namespace lockstep {

/// JSON with schema lockstep.hash/1; `checkpoints` are a node's most recent ones, in batch order.
[[nodiscard]] std::string hash_page(const std::vector<Checkpoint>& checkpoints);

/// hash_page() read back. Anything missing, misspelt or out of order is an Error, never a shorter list.
[[nodiscard]] Result<std::vector<Checkpoint>> parse_hash_page(const std::string& body);

}  // namespace lockstep
