// SPDX-License-Identifier: Apache-2.0
#include "bench/actors/latency.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <string>
#include <vector>

#include "bench/actors/load.hpp"
#include "bench/actors/lockstep_runtime.hpp"
#include "bench/support/cpu.hpp"
#include "bench/support/regime.hpp"
#include "bench/support/tsc.hpp"

namespace lockstep::bench {
namespace {

constexpr double sample_seconds = 0.2;
constexpr std::uint64_t flat_out_window = 1024;
constexpr std::array rates_per_s{50e3, 100e3, 200e3, 500e3, 1e6, 0.0};
constexpr std::array percentiles{50.0, 90.0, 99.0, 99.9, 99.99, 100.0};
constexpr std::array percentile_names{"p50", "p90", "p99", "p99.9", "p99.99", "max"};
constexpr double goal_rate_per_s = 100e3;
constexpr double goal_ratio = 40;

/// What one runtime showed at one rate.
struct Shown {
  std::array<std::vector<double>, percentiles.size()> us;  ///< a value a sample
  std::vector<double> answered_per_s;
  Histogram all_ns;
  std::string regimes;  ///< a letter a sample; ~ where it changed meanwhile
  int behind = 0;
};

double median_of(std::vector<double> values) {
  if (values.empty()) return std::nan("");
  std::ranges::sort(values);
  return values[values.size() / 2];
}

double best_of(const std::vector<double>& values) {
  return values.empty() ? std::nan("") : std::ranges::min(values);
}

std::string us(double value) {
  return fmt::format("{:.{}f}", value, value < 10 ? 2 : value < 1000 ? 1 : 0);
}

std::string rate_name(double rate_per_s) {
  if (rate_per_s == 0) return fmt::format("flat out, window {}", flat_out_window);
  const auto thousands = static_cast<int>(rate_per_s / 1000);
  return thousands < 1000 ? fmt::format("{},000/s", thousands)
                          : fmt::format("{},{:03},000/s", thousands / 1000, thousands % 1000);
}

std::vector<Contestant> contestants() {
  const auto threads = static_cast<unsigned>(std::max<std::size_t>(allowed_cpus().size(), 2) - 1);
  return {
      {"lockstep", [](Answers& answers) { return make_lockstep(answers, {}); }},
      {"mutex and condvar", [threads](Answers& answers) { return make_mutex_pool(answers, threads); }},
      {"oneTBB", [threads](Answers& answers) { return make_tbb_pool(answers, threads); }},
      {"CAF", [threads](Answers& answers) { return make_caf(answers, threads); }},
  };
}

using AtRate = std::vector<Shown>;  // by contestant

void take_sample(const Contestant& contestant, double rate_per_s, double ticks_per_ns, Shown& shown) {
  const Probe before = probe_regime();
  const LoadRun run = run_load(
      contestant, {.rate_per_s = rate_per_s, .window = flat_out_window, .seconds = sample_seconds}, ticks_per_ns);
  const Probe after = probe_regime();
  shown.regimes += before.regime == after.regime ? regime_name(after.regime) : "~";
  for (std::size_t i = 0; i < percentiles.size(); ++i) {
    shown.us[i].push_back(static_cast<double>(run.latency_ns.percentile(percentiles[i])) / 1000);
  }
  shown.answered_per_s.push_back(run.answered_per_s);
  shown.all_ns.merge(run.latency_ns);
  shown.behind += run.behind ? 1 : 0;
}

void print_rate(double rate_per_s, const std::vector<Contestant>& names, const AtRate& at_rate) {
  std::vector<std::string> columns{rate_name(rate_per_s), "p50 best"};
  columns.insert(columns.end(), percentile_names.begin(), percentile_names.end());
  columns.insert(columns.end(), {"answered/s", "behind", "regimes"});
  Table table(std::move(columns));
  for (std::size_t i = 0; i < names.size(); ++i) {
    const Shown& shown = at_rate[i];
    std::vector<std::string> row{names[i].name, us(best_of(shown.us[0]))};
    for (const auto& values : shown.us) row.push_back(us(median_of(values)));
    row.push_back(fmt::format("{:.0f}", median_of(shown.answered_per_s)));
    row.push_back(fmt::format("{}", shown.behind));
    row.push_back(shown.regimes);
    table.add_row(std::move(row));
  }
  fmt::print("\n{}", table.text());
}

void add_rows(Table& figures, double rate_per_s, const std::string& name, const Shown& shown) {
  const auto samples = fmt::format("{}", shown.answered_per_s.size());
  for (std::size_t i = 0; i < percentiles.size(); ++i) {
    figures.add_row({fmt::format("{} at {}", percentile_names[i], rate_name(rate_per_s)), name, "all", "us",
                     fmt::format("{:.3f}", median_of(shown.us[i])), fmt::format("{:.3f}", best_of(shown.us[i])),
                     samples, "0"});
  }
  figures.add_row({fmt::format("answered at {}", rate_name(rate_per_s)), name, "all", "1/s",
                   fmt::format("{:.0f}", median_of(shown.answered_per_s)),
                   fmt::format("{:.0f}", std::ranges::max(shown.answered_per_s)), samples, "0"});
}

void write_plots(const Results& results, const std::vector<Contestant>& names, const std::vector<AtRate>& shown) {
  Plot by_rate{.title = "latency from the planned time, by offered rate",
               .x_label = "transactions a second",
               .y_label = "microseconds",
               .logarithmic_x = true,
               .logarithmic_y = true,
               .lines = {}};
  Plot by_percentile = percentile_plot(fmt::format("{}: latency from the planned time", rate_name(goal_rate_per_s)));
  for (std::size_t i = 0; i < names.size(); ++i) {
    PlotLine median{.name = fmt::format("{}, p50", names[i].name), .points = {}};
    PlotLine tail{.name = fmt::format("{}, p99", names[i].name), .points = {}};
    for (std::size_t rate = 0; rate < rates_per_s.size(); ++rate) {
      if (rates_per_s[rate] == goal_rate_per_s) {
        by_percentile.lines.push_back(percentile_line(names[i].name, shown[rate][i].all_ns));
        results.distribution(fmt::format("{} {}", names[i].name, rate_name(goal_rate_per_s)), shown[rate][i].all_ns);
      }
      if (rates_per_s[rate] == 0) continue;
      median.points.emplace_back(rates_per_s[rate], median_of(shown[rate][i].us[0]));
      tail.points.emplace_back(rates_per_s[rate], median_of(shown[rate][i].us[2]));
    }
    by_rate.lines.push_back(std::move(median));
    by_rate.lines.push_back(std::move(tail));
  }
  results.plot("rates", by_rate);
  results.plot("percentiles", by_percentile);
}

void judge(const std::vector<Contestant>& names, const std::vector<AtRate>& shown) {
  const auto rate = static_cast<std::size_t>(std::ranges::find(rates_per_s, goal_rate_per_s) - rates_per_s.begin());
  const double ours = median_of(shown[rate].front().us[0]);
  for (std::size_t i = 1; i < names.size(); ++i) {
    fmt::print("{}{} / lockstep at {}, p50: {:.1f}x", i == 1 ? "\n" : "", names[i].name, rate_name(goal_rate_per_s),
               median_of(shown[rate][i].us[0]) / ours);
    if (names[i].name == "CAF") {
      fmt::print(", goal {:.0f}x: {}", goal_ratio,
                 median_of(shown[rate][i].us[0]) >= goal_ratio * ours ? "reached" : "NOT reached");
    }
    fmt::print("\n");
  }
}

}  // namespace

void compare_latencies(double seconds, const Results& results, Table& figures) {
  const std::vector<Contestant> names = contestants();
  std::vector<AtRate> shown(rates_per_s.size(), AtRate(names.size()));
  const double ticks_per_ns = calibrate_ticks().ticks_per_ns;
  const auto start = std::chrono::steady_clock::now();
  const auto elapsed = [start] {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  };
  int rounds = 0;
  do {
    for (std::size_t rate = 0; rate < rates_per_s.size(); ++rate) {
      for (std::size_t i = 0; i < names.size(); ++i) {
        take_sample(names[i], rates_per_s[rate], ticks_per_ns, shown[rate][i]);
      }
    }
    ++rounds;
  } while (elapsed() * (rounds + 1) / rounds < seconds);

  fmt::print(
      "\ntransaction to actor to reply, latency from the planned time (us; medians of {} rounds of {} s a sample)\n"
      "One thread sends, pinned; each runtime has the other CPUs. lockstep's sender is its sequencer and takes the\n"
      "replies; the peers deliver them to a second actor. lockstep stamps, chains, hashes and can undo; they do not.\n",
      rounds, sample_seconds);
  for (std::size_t rate = 0; rate < rates_per_s.size(); ++rate) {
    print_rate(rates_per_s[rate], names, shown[rate]);
    for (std::size_t i = 0; i < names.size(); ++i) add_rows(figures, rates_per_s[rate], names[i].name, shown[rate][i]);
  }
  judge(names, shown);
  write_plots(results, names, shown);
}

}  // namespace lockstep::bench
