// SPDX-License-Identifier: Apache-2.0
#pragma once

/// SeqRange: a range of sequence numbers as the command line writes it: "A..B" (half-open, as in git), "N", "A..end",
/// "-1000..end" (counted from the end). Pure functions.

#include <cstdint>
#include <string_view>

#include "base/error.hpp"

namespace lockstep {

struct SeqRange {
  std::uint64_t first = 1;
  std::uint64_t last = UINT64_MAX;  ///< inclusive
  [[nodiscard]] bool contains(std::uint64_t seq) const { return seq >= first && seq <= last; }
};

/// `last_seq` is the journal's last sequence number, which negative bounds count from. Empty text is everything.
[[nodiscard]] Result<SeqRange> parse_seq_range(std::string_view text, std::uint64_t last_seq);

}  // namespace lockstep
