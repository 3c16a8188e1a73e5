// SPDX-License-Identifier: Apache-2.0
#include "bench/support/hiccup.hpp"

#include "bench/support/tsc.hpp"

namespace lockstep::bench {

Hiccups measure_hiccups(double seconds, double ticks_per_ns) {
  Hiccups hiccups;
  std::uint64_t over_1us = 0;
  const std::uint64_t start = ticks();
  const auto end = start + static_cast<std::uint64_t>(seconds * 1e9 * ticks_per_ns);
  for (std::uint64_t last = start; last < end;) {
    const std::uint64_t now = ticks();
    const auto gap_ns = static_cast<std::uint64_t>(static_cast<double>(now - last) / ticks_per_ns);
    hiccups.gaps_ns.add(gap_ns);
    if (gap_ns > 1000) ++over_1us;
    last = now;
  }
  hiccups.seconds = seconds;
  hiccups.over_1us_per_s = static_cast<double>(over_1us) / seconds;
  return hiccups;
}

}  // namespace lockstep::bench
