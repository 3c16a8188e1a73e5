// SPDX-License-Identifier: Apache-2.0
#pragma once

/// lockstep as one of the runtimes of the comparison: a node without its outside. The sending thread is the sequencer:
/// it stamps, seals batches with chain and digests, and takes replies off their rings; each executor runs handlers,
/// with state roots on, on a pinned thread of its own. The history is in memory.

#include <memory>

#include "bench/actors/actor_runtime.hpp"

namespace lockstep::bench {

struct LockstepShape {
  unsigned executors = 1;
  /// A transaction is for the actor of its number modulo this; each has accounts of its own. With more than one,
  /// answers come in the order of the numbers only per executor.
  unsigned actors = 1;
};

std::unique_ptr<ActorRuntime> make_lockstep(Answers& answers, const LockstepShape& shape);

}  // namespace lockstep::bench
