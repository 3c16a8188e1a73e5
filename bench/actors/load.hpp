// SPDX-License-Identifier: Apache-2.0
#pragma once

/// One run of transactions against a runtime of its own. Open loop: transaction n is planned for start + n / rate
/// whatever became of those before it, and its latency counts from the plan, so that a runtime that falls behind shows
/// it. Without a rate, as fast as a window of transactions in flight lets, and the latency counts from the send.
///
/// The sending thread is pinned to the first allowed CPU. The end of a run is checked: each transaction was answered
/// once, and the balances are those that the same transactions come to one after the other; else the program ends.

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "base/histogram.hpp"
#include "bench/actors/actor_runtime.hpp"

namespace lockstep::bench {

struct Contestant {
  std::string name;
  std::function<std::unique_ptr<ActorRuntime>(Answers&)> make;
  unsigned actors = 1;  ///< a transaction is for the actor of its number modulo this
};

struct LoadPlan {
  double rate_per_s = 0;     ///< 0: by the window
  std::uint64_t window = 0;  ///< in flight at most, where there is no rate
  double seconds = 0;        ///< of sending
};

struct LoadRun {
  Histogram latency_ns;
  double answered_per_s = 0;  ///< from the start to the last answer
  bool behind = false;        ///< the sender could not keep to the plan: what it was to send took it a quarter longer
};

[[nodiscard]] LoadRun run_load(const Contestant& contestant, const LoadPlan& plan, double ticks_per_ns);

}  // namespace lockstep::bench
