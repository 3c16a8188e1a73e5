// SPDX-License-Identifier: Apache-2.0
#pragma once

/// What the machine itself takes away from a thread that does nothing but watch the clock: interrupts, the hypervisor,
/// other processes. No tail latency measured beside it can be better.

#include "base/histogram.hpp"

namespace lockstep::bench {

struct Hiccups {
  Histogram gaps_ns;   ///< between neighbouring clock readings
  double seconds = 0;  ///< how long was watched
  double over_1us_per_s = 0;
};

/// Watches on the calling thread's CPU.
[[nodiscard]] Hiccups measure_hiccups(double seconds, double ticks_per_ns);

}  // namespace lockstep::bench
