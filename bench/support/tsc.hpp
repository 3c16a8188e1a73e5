// SPDX-License-Identifier: Apache-2.0
#pragma once

/// The cheapest clock there is, for timing single events: the CPU's own counter, calibrated against
/// CLOCK_MONOTONIC_RAW. Single times are good to the counter's step and the cost of reading it (10 to 40 ns on virtual
/// machines); anything shorter has to be timed in bulk. Any thread.

#include <chrono>
#include <cstdint>

#if defined(__x86_64__)
#include <x86intrin.h>
#endif

namespace lockstep::bench {

[[nodiscard]] inline std::uint64_t ticks() {
#if defined(__x86_64__)
  return __rdtsc();
#else
  return static_cast<std::uint64_t>(std::chrono::steady_clock::now().time_since_epoch().count());
#endif
}

struct TickCalibration {
  double ticks_per_ns = 1;
  std::uint64_t step_ticks = 1;  ///< the smallest difference seen between two readings that differ
  double empty_section_ns = 0;   ///< median time that measuring nothing seems to take
};

/// Spins for 100 ms.
[[nodiscard]] TickCalibration calibrate_ticks();

}  // namespace lockstep::bench
