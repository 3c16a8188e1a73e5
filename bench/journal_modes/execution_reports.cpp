// SPDX-License-Identifier: Apache-2.0
#include "bench/journal_modes/execution_reports.hpp"

#include <algorithm>
#include <cstring>
#include <random>

namespace lockstep::bench {
namespace {

/// An order that rests, for others to trade with.
struct Resting {
  std::uint64_t order = 0;
  std::uint32_t quantity = 0;
};

void begin(ExecutionReport& report, std::uint64_t number, std::uint64_t order, ReportKind kind) {
  constexpr char symbol[] = "LKST";
  constexpr char venue[] = "BENCH";
  report.number = number;
  report.time_ns = 1'700'000'000'000'000'000 + static_cast<std::int64_t>(number) * 1000;
  report.order = order;
  report.account = order % 997;
  report.client_order = order * 2 + 1;
  report.kind = kind;
  std::memcpy(report.symbol, symbol, sizeof symbol);
  std::memcpy(report.venue, venue, sizeof venue);
}

}  // namespace

/// Orders come in around one price; half of them trade with what rests on the other side, some are cancelled.
std::vector<ExecutionReport> make_execution_reports(std::size_t count) {
  std::mt19937_64 random(42);
  std::vector<ExecutionReport> reports(count);
  std::vector<Resting> resting[2];
  std::uint64_t last_order = 0;
  for (std::size_t i = 0; i < count; ++i) {
    ExecutionReport& report = reports[i];
    const std::size_t side = random() % 2;
    std::vector<Resting>& opposite = resting[1 - side];
    const bool cancels = random() % 8 == 0 && !resting[side].empty();
    const bool trades = !cancels && !opposite.empty() && random() % 2 == 0;
    const auto quantity = static_cast<std::uint32_t>(1 + random() % 100);
    const std::int64_t ticks = 10'000 + static_cast<std::int64_t>(random() % 64);
    begin(report, i + 1, cancels ? resting[side].back().order : ++last_order,
          cancels ? ReportKind::cancelled : (trades ? ReportKind::traded : ReportKind::accepted));
    report.side = side == 0 ? Side::buy : Side::sell;
    report.price_ticks = ticks;
    report.left_quantity = quantity;
    if (cancels) {
      report.left_quantity = 0;
      resting[side].pop_back();
    } else if (trades) {
      Resting& met = opposite.back();
      report.traded_quantity = std::min(quantity, met.quantity);
      report.traded_ticks = ticks;
      report.left_quantity = quantity - report.traded_quantity;
      report.contra_order = met.order;
      met.quantity -= report.traded_quantity;
      if (met.quantity == 0) opposite.pop_back();
    } else if (resting[side].size() < 4096) {
      resting[side].push_back({last_order, quantity});
    }
  }
  return reports;
}

}  // namespace lockstep::bench
