// SPDX-License-Identifier: Apache-2.0
#include "bench/support/usl.hpp"

#include <doctest/doctest.h>

#include <array>
#include <random>
#include <vector>

using namespace lockstep::bench;

namespace {

constexpr std::array counts{1.0, 2.0, 3.0, 4.0, 6.0, 8.0, 12.0, 16.0, 24.0, 32.0, 48.0, 64.0};

/// Rates of a system that obeys the law, each off by a normal error of `noise`.
std::vector<UslPoint> measured(const UslFit& law, double noise) {
  std::mt19937_64 random(1);
  std::vector<UslPoint> points;
  for (const double n : counts) {
    // The sum of twelve uniform draws is normal enough, and the same with every standard library.
    double error = -6;
    for (int i = 0; i < 12; ++i) error += static_cast<double>(random() >> 11) * 0x1p-53;
    points.push_back({n, law.rate(n) * (1 + noise * error)});
  }
  return points;
}

}  // namespace

TEST_CASE("the fit recovers the parameters that exact rates were made with") {
  const UslFit law{.gamma = 5e5, .alpha = 0.02, .beta = 0.0005};
  const auto fit = fit_usl(measured(law, 0));
  REQUIRE(fit);
  CHECK(fit->gamma == doctest::Approx(law.gamma).epsilon(1e-6));
  CHECK(fit->alpha == doctest::Approx(law.alpha).epsilon(1e-6));
  CHECK(fit->beta == doctest::Approx(law.beta).epsilon(1e-6));
  CHECK(fit->worst_error < 1e-9);
  REQUIRE(fit->peak());
  CHECK(*fit->peak() == doctest::Approx(44.27).epsilon(1e-3));  // sqrt(0.98 / 0.0005)
}

TEST_CASE("the fit comes near the parameters when rates are off by two per cent") {
  const UslFit law{.gamma = 5e5, .alpha = 0.02, .beta = 0.0005};
  const auto fit = fit_usl(measured(law, 0.02));
  REQUIRE(fit);
  CHECK(fit->gamma == doctest::Approx(law.gamma).epsilon(0.05));
  CHECK(fit->alpha == doctest::Approx(law.alpha).epsilon(0.3));
  CHECK(fit->beta == doctest::Approx(law.beta).epsilon(0.2));
  CHECK(fit->worst_error < 0.06);
}

TEST_CASE("a coefficient that would come out below 0 is 0, and the others are fitted without it") {
  SUBCASE("a rate that grows faster than its count") {
    const auto fit = fit_usl(measured({.gamma = 1e6, .alpha = -0.004, .beta = 0}, 0));
    REQUIRE(fit);
    CHECK(fit->alpha == 0);
    CHECK(fit->beta >= 0);
    CHECK(fit->gamma > 0.9e6);
  }
  SUBCASE("no coherence at all") {
    const auto fit = fit_usl(measured({.gamma = 1e6, .alpha = 0.1, .beta = -1e-6}, 0));
    REQUIRE(fit);
    CHECK(fit->beta == 0);
    CHECK(fit->alpha == doctest::Approx(0.1).epsilon(0.05));
    CHECK_FALSE(fit->peak());
  }
}

TEST_CASE("fewer than six counts are not fitted, however often they were measured") {
  std::vector<UslPoint> points;
  for (int i = 0; i < 4; ++i) {
    for (const double n : {1.0, 2.0}) points.push_back({n, n});
  }
  CHECK_FALSE(fit_usl(points));
  CHECK(describe_usl(fit_usl(points), points) == "universal scalability law: not fitted: 2 points, 6 are needed\n");
}

TEST_CASE("the plot has the points, the fitted curve, and a straight line that stays near the points") {
  const auto points = measured({.gamma = 1, .alpha = 0.05, .beta = 0.001}, 0);
  const Plot plot = usl_plot("t", "x", "y", points, fit_usl(points));
  REQUIRE(plot.lines.size() == 3);
  CHECK(plot.lines[0].points.size() == points.size());
  CHECK(plot.lines[1].points.back().first == 64);
  CHECK(plot.lines[2].points.back().second < 20);
  CHECK(usl_plot("t", "x", "y", points, std::nullopt).lines.size() == 1);
}
