// SPDX-License-Identifier: Apache-2.0
#include "runtime/agents/checkpoint_agent.hpp"

#include <algorithm>

#include "base/log.hpp"

namespace lockstep {

HashEntry hash_entry(const Checkpoint& checkpoint, HashKind kind, bool durable) {
  HashEntry entry;
  entry.kind = kind;
  entry.flags = durable ? hash_entry_durable : 0;
  entry.index = checkpoint.batch;
  entry.last_seq = checkpoint.seq;
  entry.time_ns = checkpoint.time_ns;
  entry.state_root = checkpoint.root;
  entry.effects = checkpoint.effects;
  entry.chain = checkpoint.chain;
  return entry;
}

Checkpoint checkpoint_of(const HashEntry& entry) {
  return {entry.index, entry.last_seq, entry.time_ns, entry.state_root, entry.effects, entry.chain};
}

Checkpoint checkpoint_of(const SnapshotHeader& header) {
  return {header.index, header.seq, header.time_ns, header.root, header.effects, header.chain};
}

int CheckpointAgent::do_work(const Now&) {
  int taken = 0;
  while (const auto checkpoint = board_.poll()) {
    ++taken;
    remember(*checkpoint);
    if (log_failed_) continue;
    const HashEntry entry = hash_entry(*checkpoint, HashKind::checkpoint, executed_is_durable_);
    if (const auto written = log_.append(entry); !written) {
      // What it holds can be derived again from the journal, so the node goes on without it and says so. It never
      // takes it up again: a checkpoint missing between others would look like one that was not taken.
      log_failed_ = true;
      log(LogLevel::error, "node",
          "the hash log is no longer written, until the next start, which derives what is missing again: {}",
          written.error().message);
    }
  }
  return taken;
}

void CheckpointAgent::remember(const Checkpoint& checkpoint) {
  const std::lock_guard lock(mutex_);
  recent_.push_back(checkpoint);
  if (recent_.size() > kept) recent_.pop_front();
}

std::optional<Checkpoint> CheckpointAgent::find(std::uint64_t batch) const {
  const std::lock_guard lock(mutex_);
  const auto found = std::ranges::lower_bound(recent_, batch, {}, &Checkpoint::batch);
  if (found == recent_.end() || found->batch != batch) return std::nullopt;
  return *found;
}

std::vector<Checkpoint> CheckpointAgent::recent() const {
  const std::lock_guard lock(mutex_);
  return {recent_.begin(), recent_.end()};
}

}  // namespace lockstep
