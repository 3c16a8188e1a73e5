// SPDX-License-Identifier: Apache-2.0
#pragma once

/// Digest: a 128-bit XXH3 value, the one hash of journals, chains and state trees (hash_alg 1; xxHash >= 0.8.0, whose
/// XXH3 format is frozen). It tells accidents apart, not attackers. Stored little-endian, low half first.
/// Source: https://github.com/Cyan4973/xxHash/blob/v0.8.1/doc/xxhash_spec.md. Any thread.

#include <compare>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>

namespace lockstep {

struct Digest {
  std::uint64_t low = 0;
  std::uint64_t high = 0;

  friend bool operator==(const Digest&, const Digest&) = default;
  [[nodiscard]] bool is_zero() const { return (low | high) == 0; }

  /// 32 lower-case hex digits, high half first; `short_hex` is its first 16.
  [[nodiscard]] std::string hex() const;
  [[nodiscard]] std::string short_hex() const { return hex().substr(0, 16); }
  /// hex() read back; nothing for anything but 32 hex digits.
  [[nodiscard]] static std::optional<Digest> from_hex(std::string_view text);
};
static_assert(sizeof(Digest) == 16);

[[nodiscard]] Digest xxh3_128(std::span<const std::byte> bytes, std::uint64_t seed = 0);
[[nodiscard]] std::uint64_t xxh3_64(std::span<const std::byte> bytes, std::uint64_t seed = 0);

/// xxh3_64() of the 16 bytes of two words, for keys on hot paths: a dozen instructions and no call. The two constants
/// are from the algorithm's default secret.
[[nodiscard]] constexpr std::uint64_t xxh3_64_of(std::uint64_t first, std::uint64_t second) {
  __extension__ using Wide = unsigned __int128;
  const std::uint64_t low = first ^ 0x6782737BEA4239B9ULL;
  const std::uint64_t high = second ^ 0xAF56BC3B0996523AULL;
  const Wide product = Wide{low} * high;
  std::uint64_t hash = 16 + __builtin_bswap64(low) + high +
                       (static_cast<std::uint64_t>(product) ^ static_cast<std::uint64_t>(product >> 64));
  hash = (hash ^ hash >> 37) * 0x165667919E3779F9ULL;
  return hash ^ hash >> 32;
}

/// The bytes of a trivially copyable object without padding.
template <class T>
[[nodiscard]] std::span<const std::byte> object_bytes(const T& object) {
  static_assert(std::has_unique_object_representations_v<T>, "hashing an object with padding is not deterministic");
  return std::as_bytes(std::span<const T, 1>(&object, 1));
}

}  // namespace lockstep
