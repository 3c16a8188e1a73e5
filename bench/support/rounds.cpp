// SPDX-License-Identifier: Apache-2.0
#include "bench/support/rounds.hpp"

#include <algorithm>
#include <chrono>
#include <numeric>
#include <random>

#include "base/assert.hpp"

namespace lockstep::bench {

namespace {

using clock = std::chrono::steady_clock;

std::optional<double> median_of(std::vector<double> values) {
  if (values.empty()) return std::nullopt;
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

/// Calls `take(index)` for each case, in a new order each round, until the time is up.
template <class Take>
double in_rounds(std::size_t cases, double seconds, Take take) {
  const auto start = clock::now();
  const auto elapsed = [start] { return std::chrono::duration<double>(clock::now() - start).count(); };
  std::vector<std::size_t> order(cases);
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::mt19937 random(1);
  while (elapsed() < seconds) {
    std::shuffle(order.begin(), order.end(), random);
    for (const std::size_t index : order) {
      if (elapsed() >= seconds) break;
      take(index);
    }
  }
  return elapsed();
}

Series named_series(std::span<const Case> cases) {
  Series series;
  for (const Case& each : cases) series.outcomes.push_back({each.name, {}, 0});
  return series;
}

}  // namespace

std::optional<double> Outcome::median(Regime regime) const {
  return median_of(in(regime));
}

std::optional<double> Outcome::best(Regime regime, Better better) const {
  const auto& values = in(regime);
  if (values.empty()) return std::nullopt;
  const auto [least, greatest] = std::minmax_element(values.begin(), values.end());
  return better == Better::higher ? *greatest : *least;
}

const Outcome& Series::of(std::string_view name) const {
  const auto found = std::ranges::find(outcomes, name, &Outcome::name);
  LOCKSTEP_ASSERT(found != outcomes.end(), "no case has this name");
  return *found;
}

std::optional<double> Series::round_trip_ns(Regime regime) const {
  return median_of(round_trips_ns[static_cast<std::size_t>(regime)]);
}

Regime Series::most_common() const {
  const auto samples_in = [this](Regime regime) {
    return std::accumulate(outcomes.begin(), outcomes.end(), std::size_t{0},
                           [regime](std::size_t sum, const Outcome& each) { return sum + each.in(regime).size(); });
  };
  return std::ranges::max(all_regimes, {}, samples_in);
}

Series run_probed_rounds(std::span<const Case> cases, double seconds) {
  Series series = named_series(cases);
  const auto probe = [&series] {
    const Probe probed = probe_regime();
    series.round_trips_ns[static_cast<std::size_t>(probed.regime)].push_back(probed.round_trip_ns);
    return probed.regime;
  };
  Regime before = probe();
  series.seconds = in_rounds(cases.size(), seconds, [&](std::size_t index) {
    const Sample sample = cases[index].run();
    const Regime after = probe();
    if (sample.preempted || before != after) {
      ++series.outcomes[index].dropped;
    } else {
      series.outcomes[index].samples[static_cast<std::size_t>(after)].push_back(sample.value);
    }
    before = after;
  });
  return series;
}

Series run_plain_rounds(std::span<const Case> cases, double seconds) {
  Series series = named_series(cases);
  series.seconds = in_rounds(cases.size(), seconds, [&](std::size_t index) {
    const Sample sample = cases[index].run();
    if (sample.preempted) {
      ++series.outcomes[index].dropped;
    } else {
      series.outcomes[index].samples[static_cast<std::size_t>(Regime::one_cpu)].push_back(sample.value);
    }
  });
  return series;
}

}  // namespace lockstep::bench
