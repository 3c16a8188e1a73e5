// SPDX-License-Identifier: Apache-2.0
#include "lockstep/write_barrier.hpp"

#include <cstring>

#include "lockstep/arena.hpp"

namespace lockstep {

struct WriteBarrier::Enter {
  Arena* previous;             // whom the entries before this one belong to
  std::size_t previous_enter;  // end of the entry of the same kind before this one; 0 is none
  std::uint64_t high_water_bytes;
  std::uint64_t allocated_bytes;
  std::uint64_t blocks;
};

struct WriteBarrier::Later {
  Arena* arena;
  std::size_t previous_later;
  std::uint64_t dirty_bytes;
};

namespace {

constexpr std::uint64_t padded(std::uint64_t bytes) {
  return (bytes + 7) / 8 * 8;
}

template <class T>
T load(const std::byte* from) {
  T value;
  std::memcpy(&value, from, sizeof value);
  return value;
}

}  // namespace

WriteBarrier::WriteBarrier(std::span<std::byte> log) : log_(log) {
  LOCKSTEP_ASSERT(log.size() >= min_log_bytes && log.size() < std::size_t{1} << 32, "an undo log of this size");
  LOCKSTEP_ASSERT(reinterpret_cast<std::uintptr_t>(log.data()) % 8 == 0, "an undo log must be aligned to 8 bytes");
}

std::byte* WriteBarrier::append(Kind kind, std::uint64_t offset, std::uint64_t bytes, std::uint32_t size_class) {
  const std::uint64_t payload_bytes = padded(bytes);
  if (payload_bytes > log_.size() || payload_bytes + sizeof(Trailer) > log_.size() - used_) return nullptr;
  std::byte* const payload = log_.data() + used_;
  const Trailer trailer{offset, static_cast<std::uint32_t>(bytes), kind, static_cast<std::uint16_t>(size_class)};
  std::memcpy(payload + payload_bytes, &trailer, sizeof trailer);
  used_ += payload_bytes + sizeof trailer;
  return payload;
}

void WriteBarrier::remember(const void* address, std::size_t bytes) {
  const auto from = reinterpret_cast<std::uintptr_t>(address);
  (first_.end == 0 ? first_ : last_) = {from, from + bytes};
}

bool WriteBarrier::enter(Arena& arena) {
  const ArenaHeader& header = arena.header();
  std::byte* const payload = append(Kind::enter, 0, sizeof(Enter), 0);
  if (payload == nullptr) return false;
  const Enter entry{arena_, last_enter_, header.high_water_bytes, header.allocated_bytes, header.blocks};
  std::memcpy(payload, &entry, sizeof entry);
  last_enter_ = used_;
  arena_ = &arena;
  if (arena.undo_limit_ == Arena::not_joined) arena.undo_limit_ = header.high_water_bytes;
  return true;
}

bool WriteBarrier::free_later(Arena& arena, std::uint64_t offset, std::uint64_t dirty_bytes, std::uint32_t size_class) {
  std::byte* const payload = append(Kind::later, offset, sizeof(Later), size_class);
  if (payload == nullptr) return false;
  const Later entry{&arena, last_later_, dirty_bytes};
  std::memcpy(payload, &entry, sizeof entry);
  last_later_ = used_;
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
  while (last_later_ != 0) {
    const auto trailer = load<Trailer>(log_.data() + last_later_ - sizeof(Trailer));
    const auto entry = load<Later>(log_.data() + last_later_ - sizeof(Trailer) - sizeof(Later));
    entry.arena->push_free_block(entry.arena->link_at(trailer.offset), trailer.size_class, entry.dirty_bytes);
    last_later_ = entry.previous_later;
  }
  end_step();
}

void WriteBarrier::undo() {
  Arena* arena = arena_;
  for (std::size_t end = used_; end != 0;) {
    const auto trailer = load<Trailer>(log_.data() + end - sizeof(Trailer));
    end -= sizeof(Trailer) + padded(trailer.bytes);
    const std::byte* const payload = log_.data() + end;
    switch (trailer.kind) {
      case Kind::write:
        std::memcpy(arena->base_ + trailer.offset, payload, trailer.bytes);
        break;
      case Kind::pop:
        arena->undo_pop(trailer.offset, trailer.size_class);
        break;
      case Kind::push:
        arena->undo_push(trailer.offset, trailer.size_class, {payload, trailer.bytes});
        break;
      case Kind::later:
        break;
      case Kind::enter: {
        const auto entry = load<Enter>(payload);
        arena->undo_growth(entry.high_water_bytes);
        arena->header().allocated_bytes = entry.allocated_bytes;
        arena->header().blocks = entry.blocks;
        arena = entry.previous;
        break;
      }
    }
  }
  end_step();
}

void WriteBarrier::end_step() {
  while (last_enter_ != 0) {
    const auto entry = load<Enter>(log_.data() + last_enter_ - sizeof(Trailer) - sizeof(Enter));
    arena_->undo_limit_ = Arena::not_joined;
    arena_ = entry.previous;
    last_enter_ = entry.previous_enter;
  }
  used_ = 0;
  last_later_ = 0;
  first_ = last_ = {};
  raised_ = TrapKind::none;
}

}  // namespace lockstep
