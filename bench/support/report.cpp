// SPDX-License-Identifier: Apache-2.0
#include "bench/support/report.hpp"

#include <fmt/format.h>
#include <sys/utsname.h>

#include <algorithm>
#include <fstream>

#include "bench/support/cpu.hpp"
#include "bench/support/hiccup.hpp"
#include "bench/support/tsc.hpp"

namespace lockstep::bench {

namespace {

std::string cpu_model() {
  std::ifstream lines("/proc/cpuinfo");
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with("model name")) return line.substr(line.find(':') + 2);
  }
  return "unknown CPU";
}

std::string number(std::optional<double> value) {
  if (!value) return "";
  return fmt::format("{:.{}f}", *value, *value < 10 ? 2 : 1);
}

bool has_samples(const Series& series, Regime regime) {
  return std::ranges::any_of(series.outcomes, [regime](const Outcome& each) { return !each.in(regime).empty(); });
}

bool most_were_dropped(const Series& series) {
  std::size_t kept = 0;
  std::size_t dropped = 0;
  for (const Outcome& outcome : series.outcomes) {
    for (const Regime regime : all_regimes) kept += outcome.in(regime).size();
    dropped += static_cast<std::size_t>(outcome.dropped);
  }
  return dropped > kept;
}

}  // namespace

std::string describe_machine() {
  utsname kernel{};
  uname(&kernel);
  const TickCalibration clock = calibrate_ticks();
  const Hiccups hiccups = measure_hiccups(0.2, clock.ticks_per_ns);
  return fmt::format(
      "{}, {} CPUs allowed, Linux {}, {}\n"
      "counter {:.3f} GHz, step {} ticks, an empty section reads {:.0f} ns\n"
      "hiccups while idle: {:.0f} gaps over 1 us a second, p99.999 {:.1f} us, longest {:.1f} us\n",
      cpu_model(), allowed_cpus().size(), kernel.release, __VERSION__, clock.ticks_per_ns, clock.step_ticks,
      clock.empty_section_ns, hiccups.over_1us_per_s, static_cast<double>(hiccups.gaps_ns.percentile(99.999)) / 1000,
      static_cast<double>(hiccups.gaps_ns.max()) / 1000);
}

std::string describe_regimes(const Series& series) {
  std::string text = "regime (S: siblings, C: shared cache, F: far or busy), probes and median round trip:";
  for (const Regime regime : all_regimes) {
    const auto& probes = series.round_trips_ns[static_cast<std::size_t>(regime)];
    if (probes.empty()) continue;
    text += fmt::format(" {} {} x {:.0f} ns", regime_name(regime), probes.size(), *series.round_trip_ns(regime));
  }
  text += '\n';
  if (most_were_dropped(series)) {
    text +=
        "most samples were dropped: other work took the CPUs; run it as `chrt -f 50 PROGRAM` or on a quiet machine\n";
  }
  return text;
}

Table table_of(const Series& series, Better better) {
  std::vector<std::string> columns{"case"};
  for (const Regime regime : all_regimes) {
    if (!has_samples(series, regime)) continue;
    const std::string prefix = regime == Regime::one_cpu ? "" : fmt::format("{} ", regime_name(regime));
    columns.insert(columns.end(), {prefix + "median", prefix + "best", "n"});
  }
  columns.emplace_back("dropped");
  Table table(std::move(columns));
  for (const Outcome& outcome : series.outcomes) {
    std::vector<std::string> cells{outcome.name};
    for (const Regime regime : all_regimes) {
      if (!has_samples(series, regime)) continue;
      cells.push_back(number(outcome.median(regime)));
      cells.push_back(number(outcome.best(regime, better)));
      cells.push_back(fmt::format("{}", outcome.in(regime).size()));
    }
    cells.push_back(fmt::format("{}", outcome.dropped));
    table.add_row(std::move(cells));
  }
  return table;
}

Table figures_table() {
  return Table({"series", "case", "regime", "unit", "median", "best", "samples", "dropped"});
}

void add_figures(Table& figures, const Series& series, Better better, const std::string& series_name,
                 const std::string& unit) {
  for (const Outcome& outcome : series.outcomes) {
    for (const Regime regime : all_regimes) {
      if (outcome.in(regime).empty()) continue;
      figures.add_row({series_name, outcome.name, std::string(regime_name(regime)), unit,
                       fmt::format("{:.4f}", *outcome.median(regime)),
                       fmt::format("{:.4f}", *outcome.best(regime, better)),
                       fmt::format("{}", outcome.in(regime).size()), fmt::format("{}", outcome.dropped)});
    }
  }
}

}  // namespace lockstep::bench
