// SPDX-License-Identifier: Apache-2.0
#include "bench/actors/scaling.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <string>
#include <vector>

#include "bench/actors/load.hpp"
#include "bench/actors/lockstep_runtime.hpp"
#include "bench/support/cpu.hpp"
#include "bench/support/tsc.hpp"
#include "bench/support/usl.hpp"

namespace lockstep::bench {
namespace {

constexpr double sample_seconds = 0.1;
/// Of a run over executors: enough for all, and no shard has much more than another.
constexpr unsigned scaled_actors = 256;
constexpr std::uint64_t window_per_executor = 1024;

/// One degree of concurrency and the rates it showed.
struct Degree {
  unsigned n = 1;
  Contestant contestant;
  std::uint64_t window = 0;
  std::vector<double> rates_per_s = {};
};

std::vector<Degree> in_flight_degrees() {
  std::vector<Degree> degrees;
  for (unsigned window = 1; window <= 64; window *= 2) {
    degrees.push_back({window, {"lockstep", [](Answers& answers) { return make_lockstep(answers, {}); }}, window});
  }
  return degrees;
}

/// As many as have a CPU of their own beside the sender's; one where there is no second.
std::vector<Degree> executor_degrees() {
  std::vector<Degree> degrees;
  const auto most = static_cast<unsigned>(std::max<std::size_t>(allowed_cpus().size(), 2) - 1);
  for (unsigned executors = 1; executors <= most; ++executors) {
    degrees.push_back({executors,
                       {"lockstep",
                        [executors](Answers& answers) {
                          return make_lockstep(answers, {.executors = executors, .actors = scaled_actors});
                        },
                        scaled_actors},
                       window_per_executor * executors});
  }
  return degrees;
}

double median_of(std::vector<double> values) {
  std::ranges::sort(values);
  return values[values.size() / 2];
}

/// Everything in turn, round after round.
void measure(std::vector<Degree>& degrees, double seconds, double ticks_per_ns) {
  const auto start = std::chrono::steady_clock::now();
  do {
    for (Degree& degree : degrees) {
      const LoadPlan plan{.rate_per_s = 0, .window = degree.window, .seconds = sample_seconds};
      degree.rates_per_s.push_back(run_load(degree.contestant, plan, ticks_per_ns).answered_per_s);
    }
  } while (std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count() < seconds);
}

void show(const std::vector<Degree>& degrees, const std::string& over, const Results& results, Table& figures) {
  std::vector<UslPoint> points;
  for (const Degree& degree : degrees) {
    points.push_back({static_cast<double>(degree.n), median_of(degree.rates_per_s) / 1e6});
  }
  const std::optional<UslFit> fit = fit_usl(points);
  Table table({over, "million/s, median", "best", "fit", "X(N) / N X(1)", "n"});
  for (std::size_t i = 0; i < degrees.size(); ++i) {
    const Degree& degree = degrees[i];
    const double best = std::ranges::max(degree.rates_per_s) / 1e6;
    table.add_row({fmt::format("{}", degree.n), fmt::format("{:.3f}", points[i].rate), fmt::format("{:.3f}", best),
                   fit ? fmt::format("{:.3f}", fit->rate(points[i].n)) : std::string("-"),
                   fmt::format("{:.3f}", points[i].rate / points[i].n / points.front().rate),
                   fmt::format("{}", degree.rates_per_s.size())});
    figures.add_row({fmt::format("rate by {}", over), fmt::format("{}", degree.n), "all", "million/s",
                     fmt::format("{:.4f}", points[i].rate), fmt::format("{:.4f}", best),
                     fmt::format("{}", degree.rates_per_s.size()), "0"});
  }
  fmt::print("\n{}{}", table.text(), describe_usl(fit, points));
  if (points.size() == 1) return;  // nothing to draw
  results.plot(fmt::format("usl {}", over), usl_plot(fmt::format("lockstep's rate by {}", over), over,
                                                     "million transactions a second", points, fit));
}

}  // namespace

void measure_scaling(double seconds, const Results& results, Table& figures) {
  const double ticks_per_ns = calibrate_ticks().ticks_per_ns;
  std::vector<Degree> by_window = in_flight_degrees();
  std::vector<Degree> by_executors = executor_degrees();
  measure(by_window, seconds * 0.7, ticks_per_ns);
  measure(by_executors, seconds * 0.3, ticks_per_ns);
  fmt::print("\nlockstep's rate as concurrency grows\n");
  show(by_window, "in flight", results, figures);
  show(by_executors, "executors", results, figures);
}

}  // namespace lockstep::bench
