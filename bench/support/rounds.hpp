// SPDX-License-Identifier: Apache-2.0
#pragma once

/// Runs the cases of a comparison in turn, round after round, until the time is up: a machine that gets slower or
/// faster half-way then does so for all of them. Each sample of a two-thread case stands between two probes and is
/// dropped when they disagree, or when a thread was preempted; results are kept apart by regime.

#include <array>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "bench/support/regime.hpp"

namespace lockstep::bench {

enum class Better { higher, lower };

struct Sample {
  double value = 0;
  bool preempted = false;
};

/// One line of a comparison. `run` takes one sample, of a few milliseconds; it checks its own results and exits when
/// they are wrong.
struct Case {
  std::string name;
  std::function<Sample()> run;
};

/// The samples of one case that were kept.
struct Outcome {
  std::string name;
  std::array<std::vector<double>, all_regimes.size()> samples;
  int dropped = 0;

  [[nodiscard]] const std::vector<double>& in(Regime regime) const { return samples[static_cast<std::size_t>(regime)]; }
  /// Nothing when there is no sample in that regime.
  [[nodiscard]] std::optional<double> median(Regime regime) const;
  [[nodiscard]] std::optional<double> best(Regime regime, Better better) const;
};

struct Series {
  std::vector<Outcome> outcomes;                                       ///< in the order of the cases
  std::array<std::vector<double>, all_regimes.size()> round_trips_ns;  ///< of all probes, by regime
  double seconds = 0;

  [[nodiscard]] const Outcome& of(std::string_view name) const;
  /// Median of the probes in that regime; nothing when it never was.
  [[nodiscard]] std::optional<double> round_trip_ns(Regime regime) const;
  /// The regime that most samples fell in.
  [[nodiscard]] Regime most_common() const;
};

/// Two-thread cases. Stops at `seconds`, even in the middle of a round.
[[nodiscard]] Series run_probed_rounds(std::span<const Case> cases, double seconds);

/// One-thread cases: nothing is probed and the samples are kept under Regime::one_cpu.
[[nodiscard]] Series run_plain_rounds(std::span<const Case> cases, double seconds);

}  // namespace lockstep::bench
