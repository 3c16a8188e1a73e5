// SPDX-License-Identifier: Apache-2.0
#pragma once

/// Tag: how a completion or a readiness event finds what it belongs to: kind(8) | generation(24) | slot(32) in the 64
/// bits the kernel carries along. Never a pointer: a slot's next user has another generation, so that a late event is
/// told from a current one. Any thread; a value.

#include <cstdint>

namespace lockstep::io {

enum class TagKind : std::uint8_t { ignored, wake, accept, receive, send, cancel, write, sync };

struct Tag {
  TagKind kind = TagKind::ignored;
  std::uint32_t generation = 0;  ///< its low 24 bits travel
  std::uint32_t slot = 0;

  static constexpr std::uint32_t generation_mask = (1u << 24) - 1;

  [[nodiscard]] constexpr std::uint64_t packed() const {
    return std::uint64_t{static_cast<std::uint8_t>(kind)} << 56 | std::uint64_t{generation & generation_mask} << 32 |
           slot;
  }
  [[nodiscard]] static constexpr Tag unpack(std::uint64_t bits) {
    return {static_cast<TagKind>(bits >> 56), static_cast<std::uint32_t>(bits >> 32) & generation_mask,
            static_cast<std::uint32_t>(bits)};
  }
  [[nodiscard]] constexpr bool matches(std::uint32_t current_generation) const {
    return (current_generation & generation_mask) == generation;
  }
};

}  // namespace lockstep::io
