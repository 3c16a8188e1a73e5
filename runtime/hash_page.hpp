// SPDX-License-Identifier: Apache-2.0
#pragma once

/// HashPoint: state after one batch, as a node recorded it; and the page of them that a node serves at GET /hash, so
/// that others can compare. Pure functions; any thread.

#include <cstdint>
#include <string>
#include <vector>

#include "base/digest.hpp"
#include "base/error.hpp"

namespace lockstep {

struct HashPoint {
  std::uint64_t batch = 0;
  std::uint64_t seq = 0;
  Digest root;
  Digest effects;
  Digest chain;
  friend bool operator==(const HashPoint&, const HashPoint&) = default;
};

/// JSON with schema lockstep.hash/1; `points` are a node's most recent ones, in batch order.
[[nodiscard]] std::string hash_page(const std::vector<HashPoint>& points);

/// hash_page() read back. Anything missing, misspelt or out of order is an Error, never a shorter list.
[[nodiscard]] Result<std::vector<HashPoint>> parse_hash_page(const std::string& body);

}  // namespace lockstep
