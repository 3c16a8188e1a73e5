// SPDX-License-Identifier: Apache-2.0
#include "lockstep/fixed.hpp"

#include <doctest/doctest.h>

#include <random>

using lockstep::Fixed;
using lockstep::Rounding;
using Money = Fixed<2>;

TEST_SUITE("fixed") {
  TEST_CASE("text is parsed and formatted exactly, and nothing is rounded in silence") {
    CHECK(Money::parse("12.5")->units() == 1250);
    CHECK(Money::parse("-0.01")->units() == -1);
    CHECK(Money::parse("+7")->units() == 700);
    CHECK(Money::parse("-92233720368547758.08")->units() == INT64_MIN);
    CHECK(Fixed<0>::parse("12")->units() == 12);
    for (const char* bad : {"", "-", "+", ".", "1.", ".5", "1.234", "1.2.3", "1e3", " 1", "1 ", "--1", "0x1", "1,5",
                            "92233720368547758.08", "-92233720368547758.09", "99999999999999999999"}) {
      CAPTURE(bad);
      CHECK(!Money::parse(bad));
    }
    CHECK(!Fixed<0>::parse("1.0"));
    CHECK(Money::of_units(-5).to_string() == "-0.05");
    CHECK(Money::of_units(INT64_MIN).to_string() == "-92233720368547758.08");
    CHECK(Fixed<18>::of_units(INT64_MIN).to_string() == "-9.223372036854775808");
    CHECK(Fixed<0>::of_units(42).to_string() == "42");
  }

  TEST_CASE("what was formatted is parsed to the same number") {
    std::mt19937_64 random(12);
    for (int i = 0; i < 10'000; ++i) {
      const auto units = static_cast<std::int64_t>(random() >> (random() % 64)) * (random() % 2 == 0 ? 1 : -1);
      REQUIRE(Fixed<6>::parse(Fixed<6>::of_units(units).to_string())->units() == units);
      REQUIRE(Fixed<18>::parse(Fixed<18>::of_units(units).to_string())->units() == units);
    }
  }

  TEST_CASE("sums and multiples are exact, and overflow throws") {
    Money total = *Money::parse("19.99") * 3;
    total += Money::of(1);
    CHECK(total.to_string() == "60.97");
    CHECK((-total).to_string() == "-60.97");
    const Money most = Money::of_units(INT64_MAX), least = Money::of_units(INT64_MIN);
    CHECK_THROWS_AS(most + Money::of_units(1), std::overflow_error);
    CHECK_THROWS_AS(least - Money::of_units(1), std::overflow_error);
    CHECK_THROWS_AS(most * 2, std::overflow_error);
    CHECK_THROWS_AS(-least, std::overflow_error);
    CHECK_THROWS_AS(static_cast<void>(Money::of(INT64_MAX)), std::overflow_error);
    CHECK_THROWS_AS(static_cast<void>(most.times(Fixed<4>::of(2), Rounding::floor)), std::overflow_error);
    CHECK_THROWS_AS(static_cast<void>(most.divided_by(0, Rounding::floor)), std::domain_error);
    CHECK_THROWS_AS(static_cast<void>(least.divided_by(-1, Rounding::floor)), std::overflow_error);
  }

  TEST_CASE("each rounding rule, on halves and beside them, of either sign") {
    struct Row {
      std::int64_t numerator;  // in tenths
      std::int64_t half_even, half_away, toward_zero, floor, ceiling;
    };
    for (const Row& row :
         {Row{25, 2, 3, 2, 2, 3}, Row{35, 4, 4, 3, 3, 4}, Row{-25, -2, -3, -2, -3, -2}, Row{-35, -4, -4, -3, -4, -3},
          Row{24, 2, 2, 2, 2, 3}, Row{26, 3, 3, 2, 2, 3}, Row{-24, -2, -2, -2, -3, -2}, Row{-26, -3, -3, -2, -3, -2},
          Row{30, 3, 3, 3, 3, 3}, Row{5, 0, 1, 0, 0, 1}, Row{-5, 0, -1, 0, -1, 0}}) {
      CAPTURE(row.numerator);
      const auto tenths = Fixed<1>::of_units(row.numerator);
      CHECK(tenths.whole(Rounding::half_even) == row.half_even);
      CHECK(tenths.whole(Rounding::half_away) == row.half_away);
      CHECK(tenths.whole(Rounding::toward_zero) == row.toward_zero);
      CHECK(tenths.whole(Rounding::floor) == row.floor);
      CHECK(tenths.whole(Rounding::ceiling) == row.ceiling);
      const auto inverse = Fixed<0>::of_units(-row.numerator).divided_by(-10, Rounding::half_even);
      CHECK(inverse.units() == row.half_even);
    }
  }

  TEST_CASE("products and quotients round once, from the exact result") {
    const auto rate = *Fixed<4>::parse("0.0725");
    CHECK(Money::parse("19.99")->times(rate, Rounding::half_even).to_string() == "1.45");  // 1.449275
    CHECK(Money::of(100).divided_by(3, Rounding::half_even).to_string() == "33.33");
    CHECK(Money::of(100).divided_by(rate, Rounding::ceiling).to_string() == "1379.32");
    CHECK(Fixed<8>::of(*Money::parse("1.25"), Rounding::floor).to_string() == "1.25000000");
    CHECK(Money::of(*Fixed<8>::parse("1.25500000"), Rounding::half_even).to_string() == "1.26");
    CHECK(Money::of(*Fixed<8>::parse("1.24500000"), Rounding::half_even).to_string() == "1.24");
    static_assert(Money::of(2).times(Fixed<1>::of_units(15), Rounding::floor) == Money::of(3));
  }
}
