// SPDX-License-Identifier: Apache-2.0
#pragma once

/// ShardSweep: how an executor gives away its shards' state as it was at a checkpoint, while it goes on. From begin()
/// on it observes the write barrier: a page that is about to change for the first time, and has not been given away, is
/// copied into a fixed quota. Between batches sweep() walks the shards' arenas in order, a few pages a call, and puts
/// each page as it was, from the quota or from where it lies, into a ring to the SnapshotAgent.
///
///     shard:   | swept | sweeping here, page by page | not swept: pages change behind a copy | younger than the
///                                                                                             checkpoint: not ours
///
/// A handler never waits: when the quota is used up, the snapshot is abandoned. What an arena's image was, and whose,
/// is read from its first page as that was, so nothing is recorded for arenas that nobody touches.
///
/// Frames of the ring, in order: begin; for each owned shard, ascending: shard, and for each of its arenas: arena, then
/// its pages; end. After an abandonment the end comes early.
///
/// The executor's thread, but for ring(), whose consumer is the agent's, and the counters.

#include <cstdint>
#include <span>
#include <vector>

#include "base/digest.hpp"
#include "lockstep/address.hpp"
#include "lockstep/arena.hpp"
#include "runtime/agents/page_quota.hpp"
#include "runtime/agents/snapshot_control.hpp"
#include "runtime/ring/byte_ring.hpp"

namespace lockstep {

class ActorHost;
class Shard;

struct SweepFrame {
  enum class Kind : std::uint32_t { begin, shard, arena, pages, end };
  Kind kind = Kind::end;
  std::uint32_t actor_type = 0;   ///< arena: 0 for one of the shard's own, which key then numbers
  std::uint64_t key = 0;          ///< begin: the batch; shard: its number; arena: the actor's key
  std::uint64_t image_bytes = 0;  ///< arena
  std::uint64_t zero = 0;
  Digest effects;  ///< shard
  // pages: whole pages follow, to the frame's end
};
static_assert(sizeof(SweepFrame) == 48);

class ShardSweep final : public PageObserver {
 public:
  static constexpr std::size_t pages_per_frame = 16;

  struct Options {
    std::uint64_t quota_bytes = 64U << 20U;
    std::size_t ring_bytes = 4U << 20U;  ///< at least four frames
    std::size_t pages_per_turn = 64;     ///< that one call of sweep() gives away, rounded up to a frame
  };

  ShardSweep(SnapshotControl& control, const Options& options);
  ShardSweep(const ShardSweep&) = delete;
  ShardSweep& operator=(const ShardSweep&) = delete;

  /// At the checkpoint at the end of `batch`, when all page marks are clear. Outlived by `host`.
  void begin(std::uint64_t batch, ActorHost& host);
  /// Between batches: goes on; returns how many pages it gave away, at least 1 if it got on at all.
  int sweep();
  [[nodiscard]] bool active() const { return host_ != nullptr; }

  [[nodiscard]] ByteRing& ring() { return ring_; }

  void before_change(const std::byte* image, const std::byte* page) override;

 private:
  enum class Step : std::uint8_t { begin, shard, arena, pages, end };
  struct Part {
    Shard* shard = nullptr;
    std::uint32_t arenas = 0;  ///< that there were
    Digest effects;
    const std::byte* begin = nullptr;  ///< of its arenas in memory
    const std::byte* end = nullptr;    ///< of those there were
    const std::byte* swept = nullptr;  ///< what lies below has been given away
  };

  [[nodiscard]] bool advance(std::size_t& pages);
  [[nodiscard]] bool put(const SweepFrame& frame);
  [[nodiscard]] bool begin_arena();
  [[nodiscard]] bool put_pages(std::size_t& pages);
  [[nodiscard]] const std::byte* as_it_was(const std::byte* page) const;
  [[nodiscard]] std::uint64_t image_bytes_then(const std::byte* image) const;
  [[nodiscard]] const Part* part_of(const std::byte* page) const;
  void let_go();

  SnapshotControl& control_;
  std::size_t pages_per_turn_;
  PageQuota quota_;
  ByteRing ring_;

  ActorHost* host_ = nullptr;  // null: nothing under way
  std::uint64_t batch_ = 0;
  std::vector<Part> parts_;  // in the order of shards
  std::vector<const Part*> parts_by_address_;
  Step step_ = Step::end;
  std::size_t part_ = 0;
  std::uint32_t arena_ = 0;
  const std::byte* image_ = nullptr;  // of the arena being swept
  std::uint64_t image_bytes_ = 0;
};

}  // namespace lockstep
