// SPDX-License-Identifier: Apache-2.0
#include "runtime/agents/shard_sweep.hpp"

#include <algorithm>
#include <cstring>

#include "base/assert.hpp"
#include "lockstep/actor_header.hpp"
#include "runtime/agents/actor_host.hpp"

namespace lockstep {
namespace {

std::uint64_t pages_of(std::uint64_t bytes) {
  return (bytes + page_bytes - 1) / page_bytes;
}

}  // namespace

ShardSweep::ShardSweep(SnapshotControl& control, const Options& options)
    : control_(control),
      pages_per_turn_(options.pages_per_turn),
      quota_(options.quota_bytes),
      ring_(options.ring_bytes) {
  LOCKSTEP_ASSERT(ring_.max_frame_bytes() >= 2 * (sizeof(SweepFrame) + pages_per_frame * page_bytes),
                  "a ring too small for a snapshot's pages");
}

void ShardSweep::begin(std::uint64_t batch, ActorHost& host) {
  LOCKSTEP_ASSERT(!active(), "a snapshot was begun before the one before it had ended");
  host_ = &host;
  batch_ = batch;
  parts_.clear();
  for (const std::uint32_t number : host.owned()) {
    Shard& shard = host.shard(number);
    ShardMemory& memory = shard.memory();
    const std::byte* const first = memory.arena(0).at(Link{});
    parts_.push_back({&shard, memory.arena_count(), shard.effects, first, first + memory.declared_bytes(), first});
  }
  parts_by_address_.clear();
  for (const Part& part : parts_) parts_by_address_.push_back(&part);
  std::ranges::sort(parts_by_address_, {}, &Part::begin);
  step_ = Step::begin;
  part_ = 0;
  arena_ = 0;
  image_ = nullptr;
  host.observe(this);
}

const ShardSweep::Part* ShardSweep::part_of(const std::byte* page) const {
  const auto behind = std::ranges::upper_bound(parts_by_address_, page, {}, &Part::begin);
  if (behind == parts_by_address_.begin()) return nullptr;
  const Part* const part = *(behind - 1);
  return page < part->end ? part : nullptr;
}

const std::byte* ShardSweep::as_it_was(const std::byte* page) const {
  const std::byte* const copy = quota_.find(page);
  return copy != nullptr ? copy : page;
}

/// Of an arena that there was; the mark below which its image lay.
std::uint64_t ShardSweep::image_bytes_then(const std::byte* image) const {
  // The first page of the arena being swept may have been given away already.
  if (image == image_) return image_bytes_;
  return reinterpret_cast<const ArenaHeader*>(as_it_was(image))->high_water_bytes;
}

void ShardSweep::before_change(const std::byte* image, const std::byte* page) {
  const Part* const part = part_of(page);
  if (part == nullptr || page < part->swept) return;
  if (static_cast<std::uint64_t>(page - image) >= image_bytes_then(image)) return;
  if (quota_.find(page) != nullptr) return;
  if (quota_.keep(page)) return;
  control_.abandoned.store(true, std::memory_order_relaxed);
  let_go();
}

void ShardSweep::let_go() {
  host_->observe(nullptr);
  if (quota_.held() > 0) quota_.clear();
  step_ = Step::end;
}

int ShardSweep::sweep() {
  if (!active()) return 0;
  if (step_ != Step::end && control_.abandoned.load(std::memory_order_relaxed)) let_go();
  std::size_t pages = 0;
  std::size_t steps = 0;
  while (active() && pages < pages_per_turn_ && steps < pages_per_turn_ && advance(pages)) ++steps;
  ring_.publish();
  return static_cast<int>(std::max(pages, std::min<std::size_t>(steps, 1)));
}

/// One frame; false when the ring is full.
bool ShardSweep::advance(std::size_t& pages) {
  switch (step_) {
    case Step::begin:
      if (!put({.kind = SweepFrame::Kind::begin, .key = batch_, .effects = {}})) return false;
      step_ = Step::shard;
      return true;
    case Step::shard: {
      if (part_ == parts_.size()) {
        let_go();
        return true;
      }
      const Part& part = parts_[part_];
      if (!put({.kind = SweepFrame::Kind::shard, .key = part.shard->number(), .effects = part.effects})) return false;
      arena_ = 0;
      step_ = Step::arena;
      return true;
    }
    case Step::arena:
      return begin_arena();
    case Step::pages:
      return put_pages(pages);
    case Step::end:
      if (!put({.kind = SweepFrame::Kind::end, .effects = {}})) return false;
      host_ = nullptr;
      return true;
  }
  return false;
}

bool ShardSweep::put(const SweepFrame& frame) {
  const std::span<std::byte> room = ring_.claim(sizeof frame);
  if (room.empty()) return false;
  std::memcpy(room.data(), &frame, sizeof frame);
  return true;
}

bool ShardSweep::begin_arena() {
  Part& part = parts_[part_];
  if (arena_ == part.arenas) {
    part.swept = part.end;
    ++part_;
    step_ = Step::shard;
    return true;
  }
  const std::byte* const image = part.shard->memory().arena(arena_).at(Link{});
  const std::byte* const first = as_it_was(image);
  SweepFrame frame{.kind = SweepFrame::Kind::arena, .key = arena_, .effects = {}};
  frame.image_bytes = reinterpret_cast<const ArenaHeader*>(first)->high_water_bytes;
  if (arena_ >= Shard::own_arenas) {
    const auto& header = *reinterpret_cast<const ActorHeader*>(first + sizeof(ArenaHeader));
    frame.actor_type = header.self.type;
    frame.key = header.self.key;
  }
  if (!put(frame)) return false;
  image_ = image;
  image_bytes_ = frame.image_bytes;
  part.swept = image;
  step_ = Step::pages;
  return true;
}

bool ShardSweep::put_pages(std::size_t& pages) {
  Part& part = parts_[part_];
  const std::uint64_t done = static_cast<std::uint64_t>(part.swept - image_) / page_bytes;
  const std::uint64_t count = std::min<std::uint64_t>(pages_of(image_bytes_) - done, pages_per_frame);
  const std::span<std::byte> room = ring_.claim(sizeof(SweepFrame) + count * page_bytes);
  if (room.empty()) return false;
  const SweepFrame frame{.kind = SweepFrame::Kind::pages, .effects = {}};
  std::memcpy(room.data(), &frame, sizeof frame);
  std::byte* to = room.data() + sizeof frame;
  for (std::uint64_t i = 0; i < count; ++i, to += page_bytes, part.swept += page_bytes) {
    std::memcpy(to, as_it_was(part.swept), page_bytes);
    quota_.release(part.swept);
  }
  pages += count;
  if (done + count < pages_of(image_bytes_)) return true;
  part.swept = image_ + part.shard->memory().arena(arena_).capacity_bytes();
  image_ = nullptr;
  ++arena_;
  step_ = Step::arena;
  return true;
}

}  // namespace lockstep
