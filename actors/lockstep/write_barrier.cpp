// SPDX-License-Identifier: Apache-2.0
#include "lockstep/write_barrier.hpp"

#include <cstring>

#include "lockstep/arena.hpp"

namespace lockstep {

struct WriteBarrier::Later {
  Later* previous_later;
  Arena* arena;
};

WriteBarrier::WriteBarrier(std::span<std::byte> log)
    : top_(log.data()), begin_(log.data()), end_(log.data() + log.size()) {
  LOCKSTEP_ASSERT(log.size() >= min_log_bytes && log.size() < std::size_t{1} << 32 &&
                      reinterpret_cast<std::uintptr_t>(log.data()) % 16 == 0,
                  "an undo log of this size or alignment");
}

bool WriteBarrier::free_later(Arena& arena, Trailer block) {
  block.kind = Kind::later;
  block.payload = sizeof(Later) / 16;
  std::byte* const payload = append(block);
  if (payload == nullptr) return false;
  last_later_ = new (payload) Later{last_later_, &arena};
  return true;
}

void WriteBarrier::raise(TrapKind kind) {
  note(kind);
  throw TrapError{kind};
}

void WriteBarrier::note(TrapKind kind) {
  if (raised_ == TrapKind::none) raised_ = kind;
}

void WriteBarrier::commit() {
  LOCKSTEP_ASSERT(raised_ == TrapKind::none, "a step that raised a trap was committed");
  for (const Later* later = last_later_; later != nullptr; later = later->previous_later) {
    static_assert(sizeof(Later) == 16, "its trailer follows at once");
    const Trailer& block = *std::launder(reinterpret_cast<const Trailer*>(later + 1));
    later->arena->push_free_block(block);
  }
  end_step();
}

void WriteBarrier::undo() {
  LOCKSTEP_ASSERT(arena_ == nullptr || !arena_->is_final(), "a final step was undone");
  Arena* arena = arena_;
  while (top_ != begin_) {
    const Trailer& entry = *std::launder(reinterpret_cast<const Trailer*>(top_ - sizeof(Trailer)));
    const std::byte* const payload = top_ - sizeof(Trailer) - (std::size_t{entry.payload} << 4);
    switch (entry.kind) {
      case Kind::write:
        std::memcpy(arena->at({entry.at}), payload, std::size_t{entry.payload} << 4);
        break;
      case Kind::pop:
        arena->undo_pop(entry);
        break;
      case Kind::push:
        arena->undo_push(entry, payload);
        break;
      case Kind::later:
        break;
      case Kind::enter: {
        const Enter& joined = *std::launder(reinterpret_cast<const Enter*>(payload));
        arena->undo_growth(joined.high_water_bytes);
        arena->own_header().allocated_bytes = joined.allocated_bytes;
        arena->own_header().blocks = joined.blocks;
        arena = joined.previous;
        break;
      }
    }
    top_ -= sizeof(Trailer) + (std::size_t{entry.payload} << 4);
  }
  end_step();
}

void WriteBarrier::end_step() {
  for (const Enter* enter = last_enter_; enter != nullptr; enter = enter->previous_enter) {
    arena_->undo_limit_ = Arena::not_joined;
    arena_ = enter->previous;
  }
  top_ = begin_;
  last_enter_ = nullptr;
  last_later_ = nullptr;
  first_ = last_ = {};
  raised_ = TrapKind::none;
}

}  // namespace lockstep
