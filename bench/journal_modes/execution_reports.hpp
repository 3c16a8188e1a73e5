// SPDX-License-Identifier: Apache-2.0
#pragma once

/// ExecutionReport: what an exchange tells a trader about one of their orders, 128 bytes, two cache lines; and a stream
/// of them, the same on every machine and in every run.
///
///      0        8       16       24         32       40          48       56        64       68
///     +--------+-------+--------+----------+--------+-----------+--------+---------+--------+------+
///     | number | time  | order  | contra   | account| client id | price  | traded  | traded | left |
///     +--------+-------+--------+----------+--------+-----------+--------+---------+--------+------+
///     | kind, side, zero 6 | symbol 16 | venue 8 | zero 24                                         |
///     +--------------------+-----------+---------+-------------------------------------------------+
///      72                   80          96        104                                              128
///
/// Any thread; pure functions.

#include <cstddef>
#include <cstdint>
#include <vector>

namespace lockstep::bench {

enum class ReportKind : std::uint8_t { accepted = 1, traded = 2, cancelled = 3 };
enum class Side : std::uint8_t { buy = 1, sell = 2 };

struct alignas(64) ExecutionReport {
  std::uint64_t number = 0;  ///< 1, 2, 3, …
  std::int64_t time_ns = 0;
  std::uint64_t order = 0;
  std::uint64_t contra_order = 0;  ///< whom it traded with; 0 if it did not
  std::uint64_t account = 0;
  std::uint64_t client_order = 0;
  std::int64_t price_ticks = 0;  ///< of the order
  std::int64_t traded_ticks = 0;
  std::uint32_t traded_quantity = 0;
  std::uint32_t left_quantity = 0;
  ReportKind kind = ReportKind::accepted;
  Side side = Side::buy;
  std::uint8_t zero1[6] = {};
  char symbol[16] = {};
  char venue[8] = {};
  std::uint8_t zero2[24] = {};
};
static_assert(sizeof(ExecutionReport) == 128);
static_assert(offsetof(ExecutionReport, traded_quantity) == 64 && offsetof(ExecutionReport, kind) == 72);
static_assert(offsetof(ExecutionReport, symbol) == 80 && offsetof(ExecutionReport, venue) == 96);

[[nodiscard]] std::vector<ExecutionReport> make_execution_reports(std::size_t count);

}  // namespace lockstep::bench
