// SPDX-License-Identifier: Apache-2.0
#pragma once

/// What the samples say: two tables a load (how fast, and at what cost), a line about the conditions, and the same for
/// programs. Samples flat out during which other programs used more than a fifth of the CPUs are left out where quieter
/// ones were taken; at a rate others may use what is left over, and nothing is left out.

#include <string>
#include <vector>

#include "bench/io_profiles/load.hpp"
#include "bench/io_profiles/measurement.hpp"
#include "bench/io_profiles/profiles.hpp"
#include "bench/support/plot.hpp"
#include "bench/support/table.hpp"

namespace lockstep::bench {

/// The samples of one profile under one load, a round each; a round that did not get so far has none.
struct Samples {
  Profile profile = Profile::epoll_pool;
  bool flat_out = true;
  std::vector<Measurement> rounds;
};

struct LoadSamples {
  Load load;
  std::vector<Samples> profiles;
};

/// Requests a second and latency; the ratio is to the first profile in the same round, the median of rounds.
[[nodiscard]] Table speed_table(const LoadSamples& samples);
/// Interrupts, switches, system calls, CPU time: medians.
[[nodiscard]] Table cost_table(const LoadSamples& samples);
/// Regimes met, and what others took of the CPUs; with what to do when that was too much.
[[nodiscard]] std::string describe_conditions(const LoadSamples& samples);
/// All latencies of all kept samples.
[[nodiscard]] Histogram latencies_of(const Samples& samples);
[[nodiscard]] Plot latency_plot(const LoadSamples& samples);
/// A row a load, profile and figure. Columns: load, profile, figure, unit, median, best, samples, left_out.
[[nodiscard]] Table figures_of(const std::vector<LoadSamples>& all);

}  // namespace lockstep::bench
