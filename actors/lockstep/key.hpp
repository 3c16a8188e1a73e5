// SPDX-License-Identifier: Apache-2.0
#pragma once

/// Keys of Map and HashMap: integers, enums, small aggregates of them with operator<=>, Fixed, and String, which is
/// looked up by std::string_view without making a String. The hash is a function of the key's value alone, the same in
/// every process and build (never std::hash). Internal to the containers; pure functions.

#include <concepts>
#include <cstdint>
#include <cstring>
#include <string_view>
#include <type_traits>

#include "base/digest.hpp"
#include "lockstep/string.hpp"

namespace lockstep::detail {

/// The high and low half of a 128-bit product folded: each input bit reaches each output bit. The step of wyhash and
/// rapidhash: https://github.com/wangyi-fudan/wyhash.
[[nodiscard]] constexpr std::uint64_t fold_multiply(std::uint64_t a, std::uint64_t b) {
  __extension__ using Wide = unsigned __int128;
  const Wide product = static_cast<Wide>(a) * b;
  return static_cast<std::uint64_t>(product) ^ static_cast<std::uint64_t>(product >> 64);
}

[[nodiscard]] constexpr std::uint64_t hash_word(std::uint64_t word, std::uint64_t seed) {
  return fold_multiply(word ^ 0x9E3779B97F4A7C15ULL, seed ^ 0xE7037ED1A0B428DBULL);
}

template <class K>
struct KeyTraits {
  static_assert(std::is_trivially_copyable_v<K> && Persistent<K>,
                "lockstep: keys of a map are integers, enums, Fixed, small aggregates of them, or String");
  using Arg = std::conditional_t<sizeof(K) <= 16, K, const K&>;

  [[nodiscard]] static Arg view(const K& key) { return key; }
  [[nodiscard]] static K make(Arg key) { return key; }
  [[nodiscard]] static bool less(Arg a, Arg b) { return a < b; }
  [[nodiscard]] static bool equal(Arg a, Arg b) { return a == b; }

  [[nodiscard]] static std::uint64_t hash(Arg key) {
    std::uint64_t hash = 0;
    std::size_t at = 0;
    for (; at + 8 <= sizeof(K); at += 8) hash = hash_word(word_at(key, at, 8), hash);
    if constexpr (sizeof(K) % 8 != 0) hash = hash_word(word_at(key, at, sizeof(K) % 8), hash);
    return hash;
  }

 private:
  [[nodiscard]] static std::uint64_t word_at(const K& key, std::size_t at, std::size_t bytes) {
    std::uint64_t word = 0;
    std::memcpy(&word, reinterpret_cast<const std::byte*>(&key) + at, bytes);
    return word;
  }
};

template <>
struct KeyTraits<String> {
  using Arg = std::string_view;

  [[nodiscard]] static Arg view(const String& key) { return key.view(); }
  [[nodiscard]] static String make(Arg key) { return String(key); }
  [[nodiscard]] static bool less(Arg a, Arg b) { return a < b; }
  [[nodiscard]] static bool equal(Arg a, Arg b) { return a == b; }
  [[nodiscard]] static std::uint64_t hash(Arg key) { return xxh3_64(std::as_bytes(std::span(key.data(), key.size()))); }
};

template <class K>
using KeyArg = typename KeyTraits<K>::Arg;

}  // namespace lockstep::detail
