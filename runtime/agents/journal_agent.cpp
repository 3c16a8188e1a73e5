// SPDX-License-Identifier: Apache-2.0
#include "runtime/agents/journal_agent.hpp"

namespace lockstep {

int JournalAgent::do_work(const Now& now) {
  if (failed_.load(std::memory_order_relaxed)) return 0;
  int done = writer_.poll(now.steady_ns);
  const std::uint64_t sealed = pool_.sealed();
  while (!writer_.failure() && appended_ < sealed && writer_.can_append()) {
    writer_.append(pool_.view(++appended_));
    ++done;
  }
  if (writer_.failure()) {
    failed_.store(true, std::memory_order_release);
    return done + 1;
  }
  return done + publish();
}

int JournalAgent::publish() {
  std::uint64_t committed = appended_;
  if (durability_ == Durability::fsync) committed = writer_.durable_index();
  if (durability_ == Durability::write) committed = writer_.written_index();
  int moved = 0;
  if (pool_.committed().read() < committed) {
    pool_.committed().publish(committed);
    ++moved;
  }
  if (pool_.written().read() < writer_.durable_index()) {  // the writer reads a slab until it is durable
    pool_.written().publish(writer_.durable_index());
    ++moved;
  }
  return moved;
}

}  // namespace lockstep
