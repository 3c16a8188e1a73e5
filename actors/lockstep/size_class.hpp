// SPDX-License-Identifier: Apache-2.0
#pragma once

/// Size classes of the state arena: every block is rounded up to its class's size, and a freed block is reused by its
/// class alone. Steps of 16 bytes up to 256, then four steps a doubling (at most a quarter is slack). Part of the
/// image's layout: a change here changes every state hash. Pure functions; any thread.

#include <bit>
#include <cstdint>

namespace lockstep {

inline constexpr std::uint32_t size_class_count = 112;

/// The class of a block of `bytes`; 0 bytes count as 1.
[[nodiscard]] constexpr std::uint32_t size_class(std::uint32_t bytes) {
  const std::uint32_t last_unit = bytes == 0 ? 0 : (bytes - 1) >> 4;
  if (last_unit < 16) return last_unit;
  const auto width = static_cast<std::uint32_t>(std::bit_width(last_unit));  // 5 and more
  return 16 + (width - 5) * 4 + ((last_unit >> (width - 3)) & 3);
}

/// Bytes of a block of that class: the largest request that falls into it.
[[nodiscard]] constexpr std::uint64_t class_bytes(std::uint32_t size_class) {
  if (size_class < 16) return (std::uint64_t{size_class} + 1) << 4;
  const std::uint32_t doubling = (size_class - 16) / 4;
  const std::uint64_t quarter = std::uint64_t{64} << doubling;
  return 4 * quarter + ((size_class - 16) % 4 + 1) * quarter;
}

static_assert(size_class(1) == 0 && size_class(16) == 0 && size_class(17) == 1 && size_class(256) == 15);
static_assert(size_class(257) == 16 && size_class(320) == 16 && size_class(321) == 17 && size_class(512) == 19);
static_assert(class_bytes(15) == 256 && class_bytes(16) == 320 && class_bytes(19) == 512 && class_bytes(20) == 640);
static_assert(size_class(UINT32_MAX) == size_class_count - 1);
static_assert(class_bytes(size_class_count - 1) == std::uint64_t{1} << 32);

}  // namespace lockstep
