// SPDX-License-Identifier: Apache-2.0
#pragma once

/// Checkpoints: where the state of all shards is summed up. A checkpoint is the end of the first batch whose last seq
/// reaches the next multiple of the interval. Each executor publishes its shards' digests into the board's
/// slot for that checkpoint when it gets there, and goes on; whoever polls the board combines a slot once the last
/// executor has filled it. So no executor waits for another: only for the poller, when it is a whole board behind.
///
///     slot = checkpoint number mod slots:   | batch, seq, time, chain | shard 0 | shard 1 | … |   (each by its owner)

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "base/digest.hpp"
#include "journal/batch.hpp"
#include "runtime/agents/cursor.hpp"

namespace lockstep {

/// What one shard comes to at the end of a batch.
struct ShardDigests {
  Digest state;
  Digest effects;  ///< running hash over all effects of the shard, from the first batch on
};
static_assert(sizeof(ShardDigests) == 32);

struct Checkpoint {
  std::uint64_t batch = 0;
  std::uint64_t seq = 0;     ///< the last one executed
  std::int64_t time_ns = 0;  ///< its stamp
  Digest root;               ///< of the state
  Digest effects;            ///< of all that was emitted up to here
  Digest chain;              ///< of the batches

  friend bool operator==(const Checkpoint&, const Checkpoint&) = default;
};

/// Whether a checkpoint is taken at the end of this batch.
[[nodiscard]] constexpr bool is_checkpoint(std::uint64_t first_seq, std::uint32_t record_count,
                                           std::uint64_t interval) {
  return (first_seq - 1 + record_count) / interval != (first_seq - 1) / interval;
}

/// Combines all shards' digests, in shard order: root = XXH3-128(genesis digest, state digests), effects = XXH3-128(
/// effects digests).
[[nodiscard]] Checkpoint combine(const BatchHeader& batch, const Digest& genesis, std::span<const ShardDigests> shards);

class CheckpointBoard {
 public:
  static constexpr std::uint64_t slot_count = 64;

  CheckpointBoard(std::uint32_t shards, std::uint32_t executors, const Digest& genesis);

  // An executor's side; each calls these for every checkpoint, in order.

  /// The slot for executor `index`'s next checkpoint: it fills in its own shards and, if it is executor 0, the batch.
  /// Nothing when the poller is a whole board behind.
  struct Slot {
    BatchHeader* batch = nullptr;
    std::span<ShardDigests> shards;
  };
  [[nodiscard]] std::optional<Slot> open(std::uint32_t index);
  void publish(std::uint32_t index);

  // The poller's side; one thread.

  /// The next checkpoint that all executors have reached, if there is one.
  [[nodiscard]] std::optional<Checkpoint> poll();

 private:
  struct Entry {
    BatchHeader batch;
    std::vector<ShardDigests> shards;
  };

  Digest genesis_;
  std::vector<Entry> slots_;
  std::vector<Cursor> filled_;  // per executor: checkpoints published
  Cursor taken_;                // checkpoints polled
};

}  // namespace lockstep
