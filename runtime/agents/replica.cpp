// SPDX-License-Identifier: Apache-2.0
#include "runtime/agents/replica.hpp"

#include <algorithm>

namespace lockstep {

Replica::Replica(const Application& application, const Genesis& genesis, const Options& options)
    : shards_(genesis.shards),
      genesis_(genesis_digest(genesis)),
      board_(genesis.shards, options.executors, genesis_),
      due_(options.executors),
      done_(options.executors) {
  if (options.executors > 1 && application.has_sends()) {
    const std::size_t least = 4 * effect_bytes(genesis.message_bytes);
    mail_.emplace(options.executors, std::max(options.mail_ring_bytes, options.mail_ring_bytes == 0 ? least : 0));
  }
  for (std::uint32_t index = 0; index < options.executors; ++index) {
    Executor::Options executor{.application = &application,
                               .genesis = genesis,
                               .index = index,
                               .executors = options.executors,
                               .mail = mail_ ? &*mail_ : nullptr,
                               .board = &board_,
                               .due = &due_[index]};
    if (options.replies != nullptr) executor.replies.push_back(options.replies);
    if (options.queries != nullptr) executor.queries.push_back(options.queries);
    executors_.push_back(std::make_unique<Executor>(executor));
    executors_.back()->log_to(options.log);
  }
}

bool Replica::turn(const BatchView& batch) {
  last_ = *batch.header;
  bool all_done = true;
  for (std::size_t i = 0; i < executors_.size(); ++i) {
    if (!done_[i]) done_[i] = executors_[i]->step(batch);
    all_done = all_done && done_[i];
  }
  while (const std::optional<Checkpoint> checkpoint = board_.poll()) checkpoints_.push_back(*checkpoint);
  if (all_done) done_.assign(done_.size(), false);
  return all_done;
}

int Replica::answer_queries() {
  int answered = 0;
  for (const auto& executor : executors_) answered += executor->answer_queries();
  return answered;
}

Checkpoint Replica::end() {
  std::vector<ShardDigests> shards(shards_);
  for (const auto& executor : executors_) executor->digest_shards(shards);
  return combine(last_, genesis_, shards);
}

std::int64_t Replica::next_due_ns() const {
  std::int64_t earliest = NextDue::nothing_due;
  for (const NextDue& due : due_) earliest = std::min(earliest, due.time_ns.load(std::memory_order_relaxed));
  return earliest;
}

}  // namespace lockstep
