// SPDX-License-Identifier: Apache-2.0
#include "bench/support/tsc.hpp"

#include <time.h>

#include <algorithm>
#include <vector>

namespace lockstep::bench {

namespace {

std::int64_t raw_ns() {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC_RAW, &now);
  return now.tv_sec * 1'000'000'000 + now.tv_nsec;
}

}  // namespace

TickCalibration calibrate_ticks() {
  const std::int64_t start_ns = raw_ns();
  const std::uint64_t start_ticks = ticks();
  std::vector<std::uint64_t> differences;
  while (raw_ns() - start_ns < 100'000'000) {
    const std::uint64_t before = ticks();
    const std::uint64_t after = ticks();
    if (after > before) differences.push_back(after - before);
  }
  const std::uint64_t end_ticks = ticks();
  const std::int64_t end_ns = raw_ns();

  TickCalibration calibration;
  calibration.ticks_per_ns = static_cast<double>(end_ticks - start_ticks) / static_cast<double>(end_ns - start_ns);
  if (differences.empty()) return calibration;
  std::sort(differences.begin(), differences.end());
  calibration.step_ticks = differences.front();
  for (std::size_t i = 1; i < differences.size(); ++i) {
    const std::uint64_t step = differences[i] - differences[i - 1];
    if (step != 0) calibration.step_ticks = std::min(calibration.step_ticks, step);
  }
  calibration.empty_section_ns = static_cast<double>(differences[differences.size() / 2]) / calibration.ticks_per_ns;
  return calibration;
}

}  // namespace lockstep::bench
