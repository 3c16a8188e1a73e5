// SPDX-License-Identifier: Apache-2.0
#include "replay/journal_range.hpp"

#include <doctest/doctest.h>

using namespace lockstep;

TEST_CASE("ranges are half-open, may count from the end, and one number is itself") {
  const auto range = [](std::string_view text) { return parse_seq_range(text, 100).value(); };
  CHECK((range("5..8").first == 5 && range("5..8").last == 7));
  CHECK((range("5").first == 5 && range("5").last == 5));
  CHECK((range("-10..end").first == 91 && range("-10..end").last == 100));
  CHECK((range("-1000..end").first == 1));
  CHECK((range("7..end").last == 100));
  CHECK((range("").contains(1) && range("").contains(UINT64_MAX)));
}

TEST_CASE("a malformed or empty range is refused with the forms there are") {
  for (const char* bad : {"x", "1..", "..5", "5..5", "8..5", "1...3", "--3..end", "1..2..3", "99999999999999999999",
                          " 1", "010", "010..12", "1..012", "-03..end"}) {
    const auto refused = parse_seq_range(bad, 100);
    REQUIRE_MESSAGE(!refused.has_value(), bad);
    CHECK(refused.error().code == ErrorCode::usage);
  }
}
