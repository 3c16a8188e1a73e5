// SPDX-License-Identifier: Apache-2.0
#pragma once

/// One sample: a server is started, warmed up, timed, then run a little more while perf counts, and killed. Between the
/// stretches nothing is under way, so what is counted belongs to the requests of that stretch.

#include <optional>
#include <string_view>

#include "base/histogram.hpp"
#include "bench/io_profiles/counters.hpp"
#include "bench/io_profiles/load.hpp"
#include "bench/io_profiles/profiles.hpp"
#include "bench/support/regime.hpp"

namespace lockstep::bench {

/// Of the timed stretch, except where it says otherwise. Shares are of all CPUs together, 0 to 1.
struct Measurement {
  Regime regime = Regime::one_cpu;
  double requests_per_s = 0;
  double p50_us = 0;
  double p99_us = 0;
  double p999_us = 0;
  double voluntary_per_1000 = 0;  ///< context switches of the server
  double involuntary_per_1000 = 0;
  double server_cpu_us = 0;  ///< a request
  double res_per_1000 = 0;   ///< interrupts of the whole machine
  double cal_per_1000 = 0;
  std::optional<double> ipis_per_1000;           ///< while perf counts
  std::optional<double> io_uring_ipis_per_1000;  ///< while perf counts
  std::optional<double> l1d_misses;              ///< a request, while perf counts
  double system_calls = 0;                       ///< a request, while perf counts; or as the server counts them
  double foreign_share = 0;                      ///< CPU time that neither server nor client used
  double stolen_share = 0;
  Histogram latencies_ns;
};

/// What holds for all samples of a run.
struct Conditions {
  Placement placement;
  std::uint64_t work_rounds_per_us = 0;
  EventCounters* counters = nullptr;
};

[[nodiscard]] Measurement measure(Profile profile, const Load& load, const Conditions& conditions);

}  // namespace lockstep::bench
