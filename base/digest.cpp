// SPDX-License-Identifier: Apache-2.0
#include "base/digest.hpp"

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <fmt/format.h>

#include <charconv>

#include "base/digest_bulk.hpp"

namespace lockstep {
namespace {

BulkHash bulk_hash_portable(const void* bytes, std::size_t size, std::uint64_t seed) {
  const XXH128_hash_t hash = XXH3_128bits_withSeed(bytes, size, seed);
  return {hash.low64, hash.high64};
}

BulkHashFunction best_bulk_hash() {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx512f")) return bulk_hash_avx512;
  if (__builtin_cpu_supports("avx2")) return bulk_hash_avx2;
#endif
  return bulk_hash_portable;
}

/// Above this XXH3 works in stripes, which wider vectors speed up; below, a call would only cost.
constexpr std::size_t bulk_bytes = 240;

}  // namespace

std::string Digest::hex() const {
  return fmt::format("{:016x}{:016x}", high, low);
}

std::optional<Digest> Digest::from_hex(std::string_view text) {
  if (text.size() != 32) return std::nullopt;
  Digest digest;
  const auto read = [](std::string_view half, std::uint64_t& into) {
    const auto [end, error] = std::from_chars(half.data(), half.data() + half.size(), into, 16);
    return error == std::errc{} && end == half.data() + half.size();
  };
  if (!read(text.substr(0, 16), digest.high) || !read(text.substr(16), digest.low)) return std::nullopt;
  return digest;
}

Digest xxh3_128(std::span<const std::byte> bytes, std::uint64_t seed) {
  if (bytes.size() <= bulk_bytes) {
    const XXH128_hash_t hash = XXH3_128bits_withSeed(bytes.data(), bytes.size(), seed);
    return {hash.low64, hash.high64};
  }
  static const BulkHashFunction bulk_hash = best_bulk_hash();
  const BulkHash hash = bulk_hash(bytes.data(), bytes.size(), seed);
  return {hash.low, hash.high};
}

std::uint64_t xxh3_64(std::span<const std::byte> bytes, std::uint64_t seed) {
  return XXH3_64bits_withSeed(bytes.data(), bytes.size(), seed);
}

}  // namespace lockstep
