// SPDX-License-Identifier: Apache-2.0
#pragma once

/// What the bench of the rings says about its tables: goals as ratios of medians, and the plot. Ratios are drawn in
/// regime C, which the goals are for, or in the regime that most samples fell in.

#include <string>

#include "bench/support/plot.hpp"
#include "bench/support/rounds.hpp"

namespace lockstep::bench {

/// Ours against the best peer, one item at a time and in batches; `at_least` is the goal.
[[nodiscard]] std::string judge_throughput(const Series& series, double at_least);

/// Each queue's round trip over the probe's, which is that of two bare flags.
[[nodiscard]] std::string judge_round_trips(const Series& series);

/// The name of the case with every trick on.
inline constexpr const char* all_tricks = "all tricks";
/// What is left of the throughput without each.
[[nodiscard]] std::string worth_of_tricks(const Series& series);

/// Throughput by the size of a batch.
[[nodiscard]] Plot batch_plot(const std::string& title, const Series& series);

}  // namespace lockstep::bench
