// SPDX-License-Identifier: Apache-2.0
#include "base/digest.hpp"

#include <doctest/doctest.h>

#include <string_view>

using lockstep::Digest;

TEST_CASE("XXH3 gives the published values, so that journals can be read by another program") {
  const std::string_view text = "a";
  const auto bytes = std::as_bytes(std::span(text.data(), text.size()));
  CHECK(lockstep::xxh3_64(bytes) == 0xe6c632b61e964e1fULL);
  CHECK(lockstep::xxh3_128(bytes).hex() == "a96faf705af16834e6c632b61e964e1f");
  CHECK(lockstep::xxh3_128({}).hex() == "99aa06d3014798d86001c324468d497f");
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
