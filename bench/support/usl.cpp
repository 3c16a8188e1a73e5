// SPDX-License-Identifier: Apache-2.0
#include "bench/support/usl.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

namespace lockstep::bench {

namespace {

constexpr std::size_t terms = 3;
using Coefficients = std::array<double, terms>;
/// Normal equations: the matrix and, behind it, the right side.
using Equations = std::array<std::array<double, terms + 1>, terms>;

/// N / X is the sum of these, each times its coefficient 1/gamma, alpha/gamma, beta/gamma.
Coefficients terms_of(double n) {
  return {1, n - 1, n * (n - 1)};
}

/// Weighted least squares over the terms in `used`; the others' unknowns are set to 0.
Equations normal_equations(std::span<const UslPoint> points, const std::array<bool, terms>& used) {
  Equations equations{};
  for (const UslPoint& point : points) {
    const double y = point.n / point.rate;
    const double weight = 1 / (y * y);
    const Coefficients row = terms_of(point.n);
    for (std::size_t i = 0; i < terms; ++i) {
      if (!used[i]) continue;
      equations[i][terms] += weight * row[i] * y;
      for (std::size_t j = 0; j < terms; ++j) equations[i][j] += used[j] ? weight * row[i] * row[j] : 0;
    }
  }
  for (std::size_t i = 0; i < terms; ++i) equations[i][i] += used[i] ? 0 : 1;
  return equations;
}

/// Gaussian elimination with pivots; nothing when the matrix is singular to within rounding.
std::optional<Coefficients> solve(Equations equations) {
  for (std::size_t column = 0; column < terms; ++column) {
    std::size_t pivot = column;
    for (std::size_t row = column + 1; row < terms; ++row) {
      if (std::abs(equations[row][column]) > std::abs(equations[pivot][column])) pivot = row;
    }
    const double before = std::abs(equations[column][column]);
    std::swap(equations[column], equations[pivot]);
    if (std::abs(equations[column][column]) <= 1e-12 * before || equations[column][column] == 0) return std::nullopt;
    for (std::size_t row = column + 1; row < terms; ++row) {
      const double factor = equations[row][column] / equations[column][column];
      for (std::size_t i = column; i <= terms; ++i) equations[row][i] -= factor * equations[column][i];
    }
  }
  Coefficients solution{};
  for (std::size_t row = terms; row-- > 0;) {
    double rest = equations[row][terms];
    for (std::size_t i = row + 1; i < terms; ++i) rest -= equations[row][i] * solution[i];
    solution[row] = rest / equations[row][row];
  }
  return solution;
}

std::size_t different_counts(std::span<const UslPoint> points) {
  std::vector<double> counts;
  for (const UslPoint& point : points) counts.push_back(point.n);
  std::ranges::sort(counts);
  return static_cast<std::size_t>(std::ranges::unique(counts).begin() - counts.begin());
}

}  // namespace

double UslFit::rate(double n) const {
  return gamma * n / (1 + alpha * (n - 1) + beta * n * (n - 1));
}

std::optional<double> UslFit::peak() const {
  if (beta <= 0) return std::nullopt;
  return std::sqrt(std::max(0.0, 1 - alpha) / beta);
}

std::optional<UslFit> fit_usl(std::span<const UslPoint> points) {
  if (different_counts(points) < usl_least_points) return std::nullopt;
  std::array<bool, terms> used{true, true, true};
  std::optional<Coefficients> solution;
  while ((solution = solve(normal_equations(points, used)))) {
    const std::size_t least = (*solution)[1] < (*solution)[2] ? 1 : 2;
    if ((*solution)[least] >= 0) break;
    used[least] = false;
  }
  if (!solution || (*solution)[0] <= 0) return std::nullopt;
  const auto [inverse, contention, coherence] = *solution;
  UslFit fit{.gamma = 1 / inverse, .alpha = contention / inverse, .beta = coherence / inverse};
  for (const UslPoint& point : points) {
    fit.worst_error = std::max(fit.worst_error, std::abs(point.rate - fit.rate(point.n)) / point.rate);
  }
  return fit;
}

std::string describe_usl(const std::optional<UslFit>& fit, std::span<const UslPoint> points) {
  const std::size_t counts = different_counts(points);
  if (counts < usl_least_points) {
    return fmt::format("universal scalability law: not fitted: {} points, {} are needed\n", counts, usl_least_points);
  }
  if (!fit) return "universal scalability law: not fitted: the points do not tell its parameters apart\n";
  const std::optional<double> peak = fit->peak();
  return fmt::format("universal scalability law: gamma {:.4g}, alpha {:.4g}, beta {:.3g}, {}; worst error {:.1f} %\n",
                     fit->gamma, fit->alpha, fit->beta,
                     peak ? fmt::format("greatest at {:.0f}", *peak) : std::string("growing without a peak"),
                     100 * fit->worst_error);
}

Plot usl_plot(std::string title, std::string x_label, std::string y_label, std::span<const UslPoint> points,
              const std::optional<UslFit>& fit) {
  Plot plot{.title = std::move(title), .x_label = std::move(x_label), .y_label = std::move(y_label), .lines = {}};
  PlotLine measured{.name = "measured", .points = {}};
  for (const UslPoint& point : points) measured.points.emplace_back(point.n, point.rate);
  plot.lines.push_back(std::move(measured));
  if (!fit) return plot;
  PlotLine fitted{.name = "fit", .points = {}, .fitted = true};
  PlotLine linear{.name = "linear", .points = {}, .fitted = true};
  double farthest = 1;
  double greatest = 0;
  for (const UslPoint& point : points) {
    farthest = std::max(farthest, point.n);
    greatest = std::max(greatest, point.rate);
  }
  constexpr int steps = 100;
  for (int i = 0; i <= steps; ++i) {
    const double n = 1 + (farthest - 1) * i / steps;
    fitted.points.emplace_back(n, fit->rate(n));
    if (fit->gamma * n <= greatest * 1.2) linear.points.emplace_back(n, fit->gamma * n);
  }
  plot.lines.push_back(std::move(fitted));
  plot.lines.push_back(std::move(linear));
  return plot;
}

}  // namespace lockstep::bench
