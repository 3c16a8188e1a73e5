// SPDX-License-Identifier: Apache-2.0
#include "runtime/agents/journal_agent.hpp"

#include "base/log.hpp"

namespace lockstep {

int JournalAgent::do_work(const Now& now) {
  if (failed_.load(std::memory_order_relaxed)) return 0;
  int done = writer_.poll(now.steady_ns);
  watch_space();
  const std::uint64_t sealed = pool_.sealed();
  while (!writer_.failure() && appended_ < sealed && writer_.can_append()) {
    writer_.append(pool_.view(++appended_));
    ++done;
  }
  if (writer_.failure()) {
    failed_.store(true, std::memory_order_release);
    return done + 1;
  }
  return done + publish() + store_snapshots();
}

/// What the hard state is to say about a snapshot, then what its files may forget.
int JournalAgent::store_snapshots() {
  if (snapshots_ == nullptr) return 0;
  const std::uint64_t published = snapshots_->published.read();
  if (published == stored_) {
    if (published == 0 || snapshots_->stored.read() == published) return 0;
    if (writer_.hard_state().snapshot_index != published) return 0;
    if (snapshots_->keep_from_index != 0) writer_.prune(snapshots_->keep_from_index);
    snapshots_->stored.publish(published);
    return 1;
  }
  writer_.store_snapshots(snapshots_->mark);
  stored_ = published;
  return 1;
}

void JournalAgent::watch_space() {
  const bool lacks = writer_.out_of_space().has_value();
  if (lacks == lacks_space()) return;
  lacks_space_.store(lacks, std::memory_order_relaxed);
  if (lacks)
    log(LogLevel::error, "journal", "{}; clients are held back until there is space", writer_.out_of_space()->message);
  else
    log(LogLevel::info, "journal", "there is space again");
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
