// SPDX-License-Identifier: Apache-2.0
#pragma once

/// Metrics: what a node tells the world about itself, as a list of samples gathered when somebody asks. Agents count in
/// plain counters of their own (see Counter); nothing on a hot path knows of names, labels or Prometheus.

#include <atomic>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace lockstep {

/// A number with one writer and any number of readers. The writer pays a plain load and store.
class Counter {
 public:
  void add(std::uint64_t by = 1) { set(value_.load(std::memory_order_relaxed) + by); }
  void set(std::uint64_t value) { value_.store(value, std::memory_order_relaxed); }
  [[nodiscard]] std::uint64_t value() const { return value_.load(std::memory_order_relaxed); }

 private:
  std::atomic<std::uint64_t> value_{0};
};

struct Sample {
  enum class Kind { counter, gauge };
  Kind kind = Kind::counter;
  std::string name;  ///< lockstep_..., unit last, counters end in _total
  std::string help;
  double value = 0;
  std::vector<std::pair<std::string, std::string>> labels;
};

/// The samples in Prometheus' text format (version 0.0.4). Samples of one name must stand together.
[[nodiscard]] std::string prometheus_text(const std::vector<Sample>& samples);

}  // namespace lockstep
