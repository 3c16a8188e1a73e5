// SPDX-License-Identifier: Apache-2.0
#include "base/decimal.hpp"

#include <doctest/doctest.h>

#include <cstdint>

using namespace lockstep;

TEST_CASE("a decimal number is what it says") {
  CHECK(parse_decimal<std::uint64_t>("0") == 0);
  CHECK(parse_decimal<std::uint64_t>("10") == 10);
  CHECK(parse_decimal<std::uint64_t>("18446744073709551615") == UINT64_MAX);
  CHECK(parse_decimal<std::uint16_t>("65535") == 65535);
  CHECK(parse_decimal<std::int64_t>("-10") == -10);
}

TEST_CASE("what is not a decimal number in full, does not fit, or begins with a zero is none") {
  for (const char* text : {"", " 1", "1 ", "+1", "-1", "0x10", "1e3", "00", "010", "18446744073709551616"})
    CHECK_MESSAGE(!parse_decimal<std::uint64_t>(text).has_value(), text);
  for (const char* text : {"-", "-0", "-01", "--1", "00"})
    CHECK_MESSAGE(!parse_decimal<std::int64_t>(text).has_value(), text);
  CHECK_FALSE(parse_decimal<std::uint16_t>("65536").has_value());
}
