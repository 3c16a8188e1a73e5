// SPDX-License-Identifier: Apache-2.0
#include "runtime/agents/executor_agent.hpp"

namespace lockstep {

int ExecutorAgent::do_work(const Now&) {
  int done = executor_.answer_queries() + executor_.sweep();
  const std::uint64_t committed = pool_.committed().read();
  for (int batches = 0; batches < batches_per_turn && executed_ < committed; ++batches) {
    const std::uint64_t before = executor_.progress();
    if (!executor_.step(pool_.view(executed_ + 1), pool_.snapshot_wanted(executed_ + 1))) {
      // It waits for another executor, or for room in a ring. What it got done may be what another one waits for; if it
      // got nothing done, this thread may sleep: whoever lets it go on has worked then, and wakes it.
      return done + (executor_.progress() != before ? 1 : 0);
    }
    pool_.executed(index_).publish(++executed_);
    ++done;
  }
  return done;
}

}  // namespace lockstep
