// SPDX-License-Identifier: Apache-2.0
#include "bench/io_profiles/report.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <functional>
#include <iterator>
#include <optional>

namespace lockstep::bench {
namespace {

constexpr double quiet_share = 0.2;

using Value = std::function<std::optional<double>(const Measurement&)>;

struct Figure {
  const char* heading;  ///< in the tables
  const char* name;     ///< in the file
  const char* unit;
  int decimals;
  bool higher_is_better;
  Value value;
};

const std::vector<Figure>& speed_figures() {
  static const std::vector<Figure> figures{
      {"requests/s", "requests", "1/s", 0, true, [](const Measurement& m) { return m.requests_per_s; }},
      {"p50 us", "p50", "us", 0, false, [](const Measurement& m) { return m.p50_us; }},
      {"p99 us", "p99", "us", 0, false, [](const Measurement& m) { return m.p99_us; }},
      {"p99.9 us", "p99.9", "us", 0, false, [](const Measurement& m) { return m.p999_us; }},
  };
  return figures;
}

const std::vector<Figure>& cost_figures() {
  static const std::vector<Figure> figures{
      {"IPIs", "IPIs", "per 1000", 1, false, [](const Measurement& m) { return m.ipis_per_1000; }},
      {"io_uring's", "IPIs by io_uring", "per 1000", 1, false,
       [](const Measurement& m) { return m.io_uring_ipis_per_1000; }},
      {"RES", "RES", "per 1000", 1, false, [](const Measurement& m) { return m.res_per_1000; }},
      {"CAL", "CAL", "per 1000", 1, false, [](const Measurement& m) { return m.cal_per_1000; }},
      {"invol.", "involuntary switches", "per 1000", 1, false,
       [](const Measurement& m) { return m.involuntary_per_1000; }},
      {"vol.", "voluntary switches", "per 1000", 1, false, [](const Measurement& m) { return m.voluntary_per_1000; }},
      {"calls/req", "system calls", "per request", 2, false, [](const Measurement& m) { return m.system_calls; }},
      {"L1d/req", "L1d misses", "per request", 0, false, [](const Measurement& m) { return m.l1d_misses; }},
      {"CPU us/req", "server CPU", "us per request", 2, false, [](const Measurement& m) { return m.server_cpu_us; }},
      {"foreign %", "foreign CPU", "%", 0, false, [](const Measurement& m) { return 100 * m.foreign_share; }},
      {"steal %", "steal", "%", 1, false, [](const Measurement& m) { return 100 * m.stolen_share; }},
  };
  return figures;
}

bool is_quiet(const Measurement& sample) {
  return sample.foreign_share <= quiet_share;
}

bool is_kept(const Samples& samples, const Measurement& sample) {
  return !samples.flat_out || is_quiet(sample) || std::ranges::none_of(samples.rounds, is_quiet);
}

std::vector<double> values_of(const Samples& samples, const Value& value) {
  std::vector<double> values;
  for (const Measurement& sample : samples.rounds) {
    if (!is_kept(samples, sample)) continue;
    if (const auto number = value(sample)) values.push_back(*number);
  }
  return values;
}

std::optional<double> median_of(std::vector<double> values) {
  if (values.empty()) return std::nullopt;
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::ranges::nth_element(values, middle);
  return *middle;
}

std::optional<double> best_of(const std::vector<double>& values, bool higher_is_better) {
  if (values.empty()) return std::nullopt;
  return higher_is_better ? std::ranges::max(values) : std::ranges::min(values);
}

std::string cell(std::optional<double> value, int decimals) {
  return value ? fmt::format("{:.{}f}", *value, decimals) : "n/a";
}

/// Of requests a second, to the first profile in the same round.
std::optional<double> paired_ratio(const Samples& samples, const Samples& first) {
  std::vector<double> ratios;
  for (std::size_t i = 0; i < std::min(samples.rounds.size(), first.rounds.size()); ++i) {
    if (is_kept(samples, samples.rounds[i]) && is_kept(first, first.rounds[i]))
      ratios.push_back(samples.rounds[i].requests_per_s / first.rounds[i].requests_per_s);
  }
  return median_of(std::move(ratios));
}

std::size_t kept(const Samples& samples) {
  return static_cast<std::size_t>(
      std::ranges::count_if(samples.rounds, [&](const Measurement& sample) { return is_kept(samples, sample); }));
}

}  // namespace

Table speed_table(const LoadSamples& samples) {
  std::vector<std::string> columns{load_name(samples.load), "x 1st"};
  for (const Figure& figure : speed_figures()) columns.insert(columns.end(), {figure.heading, "best"});
  columns.insert(columns.end(), {"n", "busy"});
  Table table(columns);
  for (const Samples& each : samples.profiles) {
    std::vector<std::string> row{std::string(profile_name(each.profile)),
                                 cell(paired_ratio(each, samples.profiles.front()), 2)};
    for (const Figure& figure : speed_figures()) {
      const auto values = values_of(each, figure.value);
      row.push_back(cell(median_of(values), figure.decimals));
      row.push_back(cell(best_of(values, figure.higher_is_better), figure.decimals));
    }
    row.push_back(fmt::format("{}", kept(each)));
    row.push_back(fmt::format("{}", each.rounds.size() - kept(each)));
    table.add_row(std::move(row));
  }
  return table;
}

Table cost_table(const LoadSamples& samples) {
  std::vector<std::string> columns{"per 1000 requests:"};
  for (const Figure& figure : cost_figures()) columns.emplace_back(figure.heading);
  Table table(columns);
  for (const Samples& each : samples.profiles) {
    if (each.rounds.empty()) continue;
    std::vector<std::string> row{std::string(profile_name(each.profile))};
    for (const Figure& figure : cost_figures())
      row.push_back(cell(median_of(values_of(each, figure.value)), figure.decimals));
    table.add_row(std::move(row));
  }
  return table;
}

std::string describe_conditions(const LoadSamples& samples) {
  std::array<std::size_t, all_regimes.size()> regimes{};
  std::vector<double> foreign;
  double stolen = 0;
  for (const Samples& each : samples.profiles) {
    for (const Measurement& sample : each.rounds) {
      ++regimes[static_cast<std::size_t>(sample.regime)];
      foreign.push_back(sample.foreign_share);
      stolen = std::max(stolen, sample.stolen_share);
    }
  }
  std::string text = "regime before each sample:";
  for (const Regime regime : all_regimes) {
    const std::size_t count = regimes[static_cast<std::size_t>(regime)];
    if (count > 0) text += fmt::format(" {} x {}", regime_name(regime), count);
  }
  if (!foreign.empty())
    text +=
        fmt::format("; other programs used {:.0f} % of the CPUs (median), {:.0f} % at most; stolen at most {:.1f} %",
                    100 * *median_of(foreign), 100 * std::ranges::max(foreign), 100 * stolen);
  text += '\n';
  if (samples.load.rate == 0 && !foreign.empty() && *median_of(foreign) > quiet_share) {
    text +=
        "too busy to tell much: run it on a quiet machine, or as `chrt -f 50 PROGRAM` (as root; its threads then do "
        "not "
        "preempt each other, and SQPOLL's, forced, would never yield: for that one `nice -n -20 PROGRAM`)\n";
  }
  return text;
}

Histogram latencies_of(const Samples& samples) {
  Histogram all;
  for (const Measurement& sample : samples.rounds) {
    if (is_kept(samples, sample)) all.merge(sample.latencies_ns);
  }
  return all;
}

Plot latency_plot(const LoadSamples& samples) {
  Plot plot = percentile_plot(fmt::format("latency, {}", load_name(samples.load)));
  for (const Samples& each : samples.profiles) {
    if (!each.rounds.empty())
      plot.lines.push_back(percentile_line(std::string(profile_name(each.profile)), latencies_of(each)));
  }
  return plot;
}

Table figures_of(const std::vector<LoadSamples>& all) {
  Table table({"load", "profile", "figure", "unit", "median", "best", "samples", "left_out"});
  const auto add = [&table](const Load& load, const Samples& samples, const Figure& figure) {
    const auto values = values_of(samples, figure.value);
    if (values.empty()) return;
    table.add_row({load_name(load), std::string(profile_name(samples.profile)), figure.name, figure.unit,
                   cell(median_of(values), 4), cell(best_of(values, figure.higher_is_better), 4),
                   fmt::format("{}", values.size()), fmt::format("{}", samples.rounds.size() - kept(samples))});
  };
  for (const LoadSamples& each : all) {
    for (const Samples& samples : each.profiles) {
      for (const Figure& figure : speed_figures()) add(each.load, samples, figure);
      for (const Figure& figure : cost_figures()) add(each.load, samples, figure);
    }
  }
  return table;
}

}  // namespace lockstep::bench
