// SPDX-License-Identifier: Apache-2.0
#pragma once

/// The Universal Scalability Law (N. Gunther, Guerrilla Capacity Planning, 2007) fitted to measured rates:
///
///     X(N) = gamma N / (1 + alpha (N - 1) + beta N (N - 1))
///
/// gamma is the rate of one, alpha what is done one after the other (contention), beta what each exchanges with each
/// (coherence). With y = N / X the law is linear in gamma's inverse and the other two, so least squares solve it
/// without iterating; points weigh (X / N)^2, which makes the errors relative to the rate. A coefficient that comes out
/// below 0, which the law does not know, is set to 0 and the others are fitted again. Pure functions; any thread.

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "bench/support/plot.hpp"

namespace lockstep::bench {

/// Rate at a degree of concurrency: in-flight messages, executors, cores.
struct UslPoint {
  double n = 1;
  double rate = 0;
};

struct UslFit {
  double gamma = 0;
  double alpha = 0;
  double beta = 0;
  double worst_error = 0;  ///< of all points: |measured - fitted| / measured

  [[nodiscard]] double rate(double n) const;
  /// Where the rate is greatest; nothing when it only grows.
  [[nodiscard]] std::optional<double> peak() const;
};

/// Fewer measured points than this show nothing of three parameters.
inline constexpr std::size_t usl_least_points = 6;

/// Nothing with fewer than `usl_least_points` points, or when they do not tell the parameters apart.
[[nodiscard]] std::optional<UslFit> fit_usl(std::span<const UslPoint> points);

/// One line: the parameters, or why there are none.
[[nodiscard]] std::string describe_usl(const std::optional<UslFit>& fit, std::span<const UslPoint> points);

/// The measured rates, the fitted curve, and the straight line of perfect scaling.
[[nodiscard]] Plot usl_plot(std::string title, std::string x_label, std::string y_label,
                            std::span<const UslPoint> points, const std::optional<UslFit>& fit);

}  // namespace lockstep::bench
