// SPDX-License-Identifier: Apache-2.0
#pragma once

/// What a small header was before it was damaged, when its checksum of 128 bits proves it: that something of it, put
/// right in one way, has just this checksum is no chance. Pure functions, for headers of which most is the same in
/// each, so that the caller can put that right beforehand.

#include <bit>
#include <cstddef>
#include <cstring>
#include <optional>

#include "base/digest.hpp"

namespace lockstep {

/// Whether a checksum that should be `right` was, and is a damaged one. By chance, one in 10^25 differs in so few bits.
[[nodiscard]] inline bool is_damaged_checksum(const Digest& found, const Digest& right) {
  constexpr int damaged_bits = 8;
  return std::popcount(found.low ^ right.low) + std::popcount(found.high ^ right.high) <= damaged_bits;
}

/// `header` with the one bit of its bytes [from, to) turned over with which `proves(header)` holds.
template <class Header, class Proves>
[[nodiscard]] std::optional<Header> without_flipped_bit(const Header& header, std::size_t from, std::size_t to,
                                                        Proves&& proves) {
  for (std::size_t bit = from * 8; bit < to * 8; ++bit) {
    std::byte bytes[sizeof header];
    std::memcpy(bytes, &header, sizeof header);
    bytes[bit / 8] ^= static_cast<std::byte>(1 << bit % 8);
    Header turned;
    std::memcpy(&turned, bytes, sizeof turned);
    if (proves(turned)) return turned;
  }
  return std::nullopt;
}

}  // namespace lockstep
