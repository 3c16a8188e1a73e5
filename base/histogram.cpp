// SPDX-License-Identifier: Apache-2.0
#include "base/histogram.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>

namespace lockstep {

void Histogram::merge(const Histogram& other) {
  for (std::size_t i = 0; i < counts_.size(); ++i) counts_[i] += other.counts_[i];
  count_ += other.count_;
  sum_ += other.sum_;
  max_ = std::max(max_, other.max_);
  min_ = std::min(min_, other.min_);
}

std::uint64_t Histogram::percentile(double percent) const {
  if (count_ == 0) return 0;
  const double share = std::clamp(percent, 0.0, 100.0) / 100 * static_cast<double>(count_);
  const std::uint64_t rank = std::clamp<std::uint64_t>(static_cast<std::uint64_t>(std::ceil(share)), 1, count_);
  std::uint64_t seen = 0;
  for (std::size_t i = 0; i < counts_.size(); ++i) {
    seen += counts_[i];
    if (seen >= rank) return std::min(top_of(i), max_);
  }
  return max_;
}

std::string Histogram::hgrm(double unit) const {
  std::string text = "       Value     Percentile TotalCount 1/(1-Percentile)\n\n";
  const auto out = std::back_inserter(text);
  const double total = static_cast<double>(count_);
  // Five lines for each halving of what is left above, as HdrHistogram's own writer does.
  constexpr double lines_per_half = 5;
  double next_percentile = 0;
  std::uint64_t seen = 0;
  double squares = 0;  // of distances from the mean
  for (std::size_t i = 0; i < counts_.size() && seen < count_; ++i) {
    if (counts_[i] == 0) continue;
    seen += counts_[i];
    const double value = static_cast<double>(std::min(top_of(i), max_)) / unit;
    squares += static_cast<double>(counts_[i]) * (value - mean() / unit) * (value - mean() / unit);
    const double reached = static_cast<double>(seen) / total;
    while (reached >= next_percentile && next_percentile < 1 && seen < count_) {
      fmt::format_to(out, "{:12.3f} {:.12f} {:10} {:14.2f}\n", value, next_percentile, seen, 1 / (1 - next_percentile));
      const double halves = std::floor(std::log2(1 / (1 - next_percentile))) + 1;
      next_percentile += 1 / (lines_per_half * std::exp2(halves));
    }
  }
  fmt::format_to(out, "{:12.3f} {:.12f} {:10}\n", static_cast<double>(max_) / unit, 1.0, count_);
  fmt::format_to(out, "#[Mean    = {:12.3f}, StdDeviation   = {:12.3f}]\n", mean() / unit,
                 std::sqrt(count_ == 0 ? 0 : squares / total));
  fmt::format_to(out, "#[Max     = {:12.3f}, Total count    = {:12}]\n", static_cast<double>(max_) / unit, count_);
  fmt::format_to(out, "#[Buckets = {:12}, SubBuckets     = {:12}]\n", counts_.size() / steps, steps);
  return text;
}

}  // namespace lockstep
