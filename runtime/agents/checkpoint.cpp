// SPDX-License-Identifier: Apache-2.0
#include "runtime/agents/checkpoint.hpp"

#include "base/state_digest.hpp"

namespace lockstep {

Checkpoint combine(const BatchHeader& batch, const Digest& genesis, std::span<const ShardDigests> shards) {
  std::vector<Digest> states;
  std::vector<Digest> effects;
  for (const ShardDigests& shard : shards) {
    states.push_back(shard.state);
    effects.push_back(shard.effects);
  }
  return {.batch = batch.index,
          .seq = batch.first_seq - 1 + batch.record_count,
          .time_ns = batch.last_time_ns,
          .root = state_root(genesis, states),
          .effects = effects_root(effects),
          .chain = batch.chain};
}

CheckpointBoard::CheckpointBoard(std::uint32_t shards, std::uint32_t executors, const Digest& genesis)
    : genesis_(genesis), slots_(slot_count), filled_(executors) {
  for (Entry& entry : slots_) entry.shards.resize(shards);
}

std::optional<CheckpointBoard::Slot> CheckpointBoard::open(std::uint32_t index) {
  const std::uint64_t number = filled_[index].read();
  if (number - taken_.read() == slot_count) return std::nullopt;
  Entry& entry = slots_[number % slot_count];
  return Slot{&entry.batch, entry.shards};
}

void CheckpointBoard::publish(std::uint32_t index) {
  filled_[index].publish(filled_[index].read() + 1);
}

std::optional<Checkpoint> CheckpointBoard::poll() {
  const std::uint64_t number = taken_.read();
  for (const Cursor& filled : filled_) {
    if (filled.read() == number) return std::nullopt;
  }
  const Entry& entry = slots_[number % slot_count];
  const Checkpoint checkpoint = combine(entry.batch, genesis_, entry.shards);
  taken_.publish(number + 1);
  return checkpoint;
}

}  // namespace lockstep
