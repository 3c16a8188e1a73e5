// SPDX-License-Identifier: Apache-2.0
#include "base/histogram.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <random>
#include <sstream>
#include <vector>

using lockstep::Histogram;

TEST_CASE("an empty histogram answers zero to everything") {
  const Histogram empty;
  CHECK(empty.count() == 0);
  CHECK(empty.min() == 0);
  CHECK(empty.max() == 0);
  CHECK(empty.percentile(99) == 0);
  CHECK(empty.mean() == 0);
}

TEST_CASE("small values are exact, the ends of the range too") {
  Histogram histogram;
  for (std::uint64_t value = 1; value <= 100; ++value) histogram.add(value);
  CHECK(histogram.percentile(0) == 1);
  CHECK(histogram.percentile(50) == 50);
  CHECK(histogram.percentile(99) == 99);
  CHECK(histogram.percentile(99.5) == 100);
  CHECK(histogram.percentile(100) == 100);
  CHECK(histogram.mean() == doctest::Approx(50.5));
  histogram.add(UINT64_MAX);
  CHECK(histogram.max() == UINT64_MAX);
  CHECK(histogram.percentile(100) == UINT64_MAX);
}

TEST_CASE("percentiles are those of the sorted values, never below and at most 0.8 % above") {
  std::mt19937_64 random(7);
  std::vector<std::uint64_t> values;
  Histogram histogram;
  for (int i = 0; i < 50'000; ++i) {
    values.push_back(random() >> (random() % 60));
    histogram.add(values.back());
  }
  std::sort(values.begin(), values.end());
  for (const double percent : {0.1, 10.0, 50.0, 90.0, 99.0, 99.9, 99.99, 100.0}) {
    CAPTURE(percent);
    const auto rank = static_cast<std::size_t>(std::ceil(percent / 100 * static_cast<double>(values.size())));
    const std::uint64_t exact = values[rank - 1];
    CHECK(histogram.percentile(percent) >= exact);
    CHECK(static_cast<double>(histogram.percentile(percent)) <= static_cast<double>(exact) * 1.008);
  }
}

TEST_CASE("merged histograms are the histogram of all values") {
  std::mt19937_64 random(8);
  Histogram all;
  Histogram first;
  Histogram second;
  for (int i = 0; i < 10'000; ++i) {
    const std::uint64_t value = random() % 1'000'000;
    all.add(value);
    (i % 3 == 0 ? first : second).add(value);
  }
  first.merge(second);
  first.merge(Histogram());
  CHECK(first.hgrm() == all.hgrm());
  CHECK(first.min() == all.min());
  CHECK(first.mean() == doctest::Approx(all.mean()));
}

TEST_CASE("the .hgrm text rises from the least value to the greatest and ends at percentile 1") {
  Histogram histogram;
  for (std::uint64_t value = 1000; value <= 100'000; value += 7) histogram.add(value);
  std::istringstream lines(histogram.hgrm(1000));
  std::string line;
  std::getline(lines, line);
  CHECK(line == "       Value     Percentile TotalCount 1/(1-Percentile)");
  double last_value = 0;
  double last_percentile = -1;
  int read = 0;
  while (std::getline(lines, line) && (line.empty() || line[0] != '#')) {
    if (line.empty()) continue;
    std::istringstream fields(line);
    double value = 0;
    double percentile = 0;
    fields >> value >> percentile;
    REQUIRE_FALSE(fields.fail());
    CHECK(value >= last_value);
    CHECK(percentile > last_percentile);
    last_value = value;
    last_percentile = percentile;
    ++read;
  }
  CHECK(read > 20);
  CHECK(last_percentile == 1);
  CHECK(last_value == doctest::Approx(static_cast<double>(histogram.max()) / 1000).epsilon(0.001));
}
