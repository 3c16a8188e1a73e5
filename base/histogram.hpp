// SPDX-License-Identifier: Apache-2.0
#pragma once

/// Histogram of unsigned values (latencies in ns, sizes): log-linear, 128 steps to each power of two, so a value is
/// kept to within 0.8 % from 0 to 2^64 - 1 in one fixed array of 58 KiB. Adding costs a count-leading-zeros and an
/// increment and allocates nothing; histograms of several threads or rounds merge exactly. It keeps no order and no
/// time.
///
/// For latencies under load record `now - planned send time`, not `now - actual send time`: a sender that was held up
/// would otherwise leave out the very requests that waited ("coordinated omission").
///
/// One thread; merge after the threads are done. Shape and .hgrm format: HdrHistogram (http://hdrhistogram.org).

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <string>

namespace lockstep {

class Histogram {
 public:
  void add(std::uint64_t value, std::uint64_t times = 1) {
    counts_[bucket_of(value)] += times;
    count_ += times;
    sum_ += static_cast<double>(value) * static_cast<double>(times);
    if (value > max_) max_ = value;
    if (value < min_) min_ = value;
  }

  void merge(const Histogram& other);
  void clear() { *this = Histogram(); }

  [[nodiscard]] std::uint64_t count() const { return count_; }
  /// Exact; 0 when empty.
  [[nodiscard]] std::uint64_t max() const { return max_; }
  [[nodiscard]] std::uint64_t min() const { return count_ == 0 ? 0 : min_; }
  [[nodiscard]] double mean() const { return count_ == 0 ? 0 : sum_ / static_cast<double>(count_); }

  /// A value that at least `percent` of all values do not exceed, at most 0.8 % above the least such value; `percent`
  /// from 0 to 100. 0 when empty.
  [[nodiscard]] std::uint64_t percentile(double percent) const;

  /// The percentile curve as HdrHistogram's plotter (https://hdrhistogram.github.io/HdrHistogram/plotFiles.html) reads
  /// it, values divided by `unit` (1000 prints nanoseconds as microseconds).
  [[nodiscard]] std::string hgrm(double unit = 1) const;

 private:
  static constexpr unsigned step_bits = 7;
  static constexpr std::uint64_t steps = std::uint64_t{1} << step_bits;

  /// Values below 128 have a bucket each; above, the 7 bits after the leading one tell them apart.
  [[nodiscard]] static constexpr std::size_t bucket_of(std::uint64_t value) {
    if (value < steps) return value;
    const unsigned shift = static_cast<unsigned>(std::bit_width(value)) - 1 - step_bits;
    return ((shift + 1) << step_bits) + ((value >> shift) & (steps - 1));
  }
  /// The greatest value of a bucket.
  [[nodiscard]] static constexpr std::uint64_t top_of(std::size_t bucket) {
    if (bucket < steps) return bucket;
    const std::size_t shift = (bucket >> step_bits) - 1;
    return (((steps | (bucket & (steps - 1))) + 1) << shift) - 1;
  }

  std::array<std::uint64_t, (64 - step_bits + 1) << step_bits> counts_{};
  std::uint64_t count_ = 0;
  std::uint64_t max_ = 0;
  std::uint64_t min_ = UINT64_MAX;
  double sum_ = 0;
};

}  // namespace lockstep
