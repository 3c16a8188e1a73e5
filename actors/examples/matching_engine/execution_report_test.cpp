// SPDX-License-Identifier: Apache-2.0
#include "execution_report.hpp"

#include <doctest/doctest.h>

#include <fmt/format.h>

#include <cstring>
#include <string>

#include "flow_run.hpp"

namespace matching {
namespace {

std::string hex(const ExecutionReport& report) {
  std::string text;
  for (const std::byte byte : std::as_bytes(std::span(&report, 1)))
    text += fmt::format("{:02x}", std::to_integer<unsigned>(byte));
  return text;
}

}  // namespace

TEST_CASE("a report's bytes are those of its picture") {
  const ExecutionReport report(0x01, 0x02, 0x03, 0x04, 0x05, 0x06, 0x07, 0x08, 0x09, 0x0a, 0x0b, 0x0c, 0x0d, 0x0e, 0x0f,
                               Event::Traded, Side::Sell, OrderKind::Market, Reason::TooManyTrades, 0);
  std::string golden;
  for (unsigned field = 1; field <= 15; ++field) golden += fmt::format("{:02x}00000000000000", field);
  golden += "0101030b00000000";
  CHECK(hex(report) == golden);
}

TEST_CASE("the reports of a flow are the same for everyone, and the first of more") {
  const auto reports = execution_reports(42, 2'000);
  REQUIRE(reports.size() == 2'000);
  for (std::size_t i = 0; i < reports.size(); ++i) REQUIRE(reports[i].number() == i + 1);
  const auto more = execution_reports(42, 2'001);
  CHECK(std::memcmp(reports.data(), more.data(), reports.size() * sizeof reports[0]) == 0);
  const auto other = execution_reports(43, 2'000);
  CHECK(std::memcmp(reports.data(), other.data(), reports.size() * sizeof reports[0]) != 0);
  CHECK(lockstep::xxh3_64(std::as_bytes(std::span(reports))) == 9926512286408664449U);
}

}  // namespace matching
