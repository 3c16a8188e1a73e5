// SPDX-License-Identifier: Apache-2.0
#pragma once

/// How far apart the two CPUs are at this moment. On a virtual machine whose CPUs float over the host's cores the same
/// queue runs up to forty times faster or slower from one minute to the next, so a two-thread figure means nothing
/// without it: probe before and after a sample, and drop the sample when the two differ.

#include <array>
#include <string_view>

namespace lockstep::bench {

enum class Regime {
  siblings,  ///< S: two threads of one core, round trip under 85 ns
  close,     ///< C: two cores that share a cache, 85 to 200 ns
  far,       ///< F: cores of different clusters or sockets, or a busy machine, over 200 ns
  one_cpu,   ///< the figure comes from one thread, nothing was probed
};
inline constexpr std::array all_regimes{Regime::siblings, Regime::close, Regime::far, Regime::one_cpu};

/// S, C, F or "-".
[[nodiscard]] std::string_view regime_name(Regime regime);

struct Probe {
  double round_trip_ns = 0;
  Regime regime = Regime::far;
};

/// Two flags on two cache lines, one set by each of the first two allowed CPUs in turn: the floor of every hand-over
/// and back. Median of nine series of 200; takes 0.1 to 1 ms on a quiet machine.
[[nodiscard]] Probe probe_regime();

}  // namespace lockstep::bench
