// SPDX-License-Identifier: Apache-2.0
#include "base/digest.hpp"

#include <doctest/doctest.h>

#include <cstddef>
#include <span>
#include <string_view>
#include <vector>

#include "base/digest_bulk.hpp"

using lockstep::Digest;

TEST_CASE("XXH3 gives the published values, so that journals can be read by another program") {
  const std::string_view text = "a";
  const auto bytes = std::as_bytes(std::span(text.data(), text.size()));
  CHECK(lockstep::xxh3_64(bytes) == 0xe6c632b61e964e1fULL);
  CHECK(lockstep::xxh3_128(bytes).hex() == "a96faf705af16834e6c632b61e964e1f");
  CHECK(lockstep::xxh3_128({}).hex() == "99aa06d3014798d86001c324468d497f");
}

TEST_CASE("the hash of two words is that of their bytes") {
  std::uint64_t word = 1;
  for (int i = 0; i < 1000; ++i) {
    const std::uint64_t words[2] = {word, i % 3 == 0 ? 0 : ~word};
    CHECK(lockstep::xxh3_64_of(words[0], words[1]) == lockstep::xxh3_64(std::as_bytes(std::span(words))));
    word = word * 6364136223846793005ULL + 1442695040888963407ULL;
  }
}

#if defined(__x86_64__)
TEST_CASE("every compiled variant of the hash that this CPU can run gives the same values") {
  std::vector<std::byte> bytes(9'000);
  for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<std::byte>(i * 131 >> 3 & 255);
  for (const std::size_t size : {1U, 240U, 241U, 512U, 1'023U, 1'024U, 1'025U, 4'096U, 8'999U}) {
    for (const std::uint64_t seed : {0U, 1U, 77U}) {
      const Digest digest = lockstep::xxh3_128(std::span(bytes).first(size), seed);
      if (__builtin_cpu_supports("avx2")) {
        const lockstep::BulkHash hash = lockstep::bulk_hash_avx2(bytes.data(), size, seed);
        CHECK(Digest{hash.low, hash.high} == digest);
      }
      if (__builtin_cpu_supports("avx512f")) {
        const lockstep::BulkHash hash = lockstep::bulk_hash_avx512(bytes.data(), size, seed);
        CHECK(Digest{hash.low, hash.high} == digest);
      }
    }
  }
}
#endif

TEST_CASE("long inputs give the published algorithm's value") {
  const std::vector<std::byte> zeroes(4'096);
  CHECK(lockstep::xxh3_128(zeroes).hex() == "3ee8dc4f9e7ee49593d76fe148c689ba");
  CHECK(lockstep::xxh3_128(zeroes, 1).hex() == "0d50bb48e79874b4eca1fdafb7b0bd2a");
}

TEST_CASE("a digest prints its high half first and knows zero") {
  CHECK(Digest{0x1, 0x2}.hex() == "00000000000000020000000000000001");
  CHECK(Digest{}.is_zero());
  CHECK_FALSE(Digest{0, 1}.is_zero());
}

TEST_CASE("a printed digest reads back, and anything else is refused") {
  const Digest digest{0x0123456789abcdefULL, 0xfedcba9876543210ULL};
  CHECK(Digest::from_hex(digest.hex()) == digest);
  for (const char* bad : {"", "00", "0x000000000000000000000000000000", "-0000000000000000000000000000001",
                          "00000000000000020000000000000001 ", "g0000000000000020000000000000001"})
    CHECK_FALSE(Digest::from_hex(bad).has_value());
}
