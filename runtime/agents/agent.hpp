// SPDX-License-Identifier: Apache-2.0
#pragma once

/// Agent: a role of the node (perimeter, sequencer, journal, executor) as a thing that is polled. It never blocks,
/// never reads a clock and never learns which thread runs it; so agents can share one thread, have one each, or run
/// under a simulator. Source of the shape: Agrona's Agent (https://github.com/aeron-io/agrona).

#include <cstdint>
#include <string_view>

namespace lockstep {

/// The clocks as read once at the start of a loop turn.
struct Now {
  std::int64_t real_ns = 0;    ///< for stamps
  std::int64_t steady_ns = 0;  ///< for deadlines and idle policies
};

class Agent {
 public:
  virtual ~Agent() = default;
  [[nodiscard]] virtual std::string_view name() const = 0;
  /// Does what can be done now; returns how many things it did, 0 when there was nothing.
  virtual int do_work(const Now& now) = 0;
  /// The steady time by which do_work wants to be called even if nothing arrives; INT64_MAX when there is none.
  [[nodiscard]] virtual std::int64_t deadline_ns() const { return INT64_MAX; }
};

}  // namespace lockstep
