// SPDX-License-Identifier: Apache-2.0
#pragma once

/// TickArena: a bump allocator for what lives no longer than one batch: frames, sends, builders. Allocation is an add
/// and a compare; everything goes at once, in O(1), by purge() or back to a checkpoint(). Nothing is destroyed, so only
/// trivially destructible objects may lie here. It never grows: its owner sizes it from the limits in genesis, and when
/// it is full it says so with null. Memory is handed out as it is, not zeroed.
///
/// One thread; the memory is the owner's.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <type_traits>

namespace lockstep {

class TickArena {
 public:
  /// A place to go back to, with all that was allocated before it.
  struct Checkpoint {
    std::uintptr_t top;
  };

  explicit TickArena(std::span<std::byte> memory)
      : begin_(reinterpret_cast<std::uintptr_t>(memory.data())), top_(begin_), end_(begin_ + memory.size()) {}
  TickArena(const TickArena&) = delete;
  TickArena& operator=(const TickArena&) = delete;

  /// Null when what is left does not suffice. `alignment` is a power of two.
  [[nodiscard]] std::byte* allocate_bytes(std::uint32_t bytes, std::uint32_t alignment = 16) {
    const std::uintptr_t start = (top_ + (alignment - 1)) & ~(std::uintptr_t{alignment} - 1);
    const std::uintptr_t next = start + bytes;
    if (next > end_) [[unlikely]] {
      return nullptr;
    }
    top_ = next;
    return reinterpret_cast<std::byte*>(start);
  }

  /// Uninitialised storage for `count` objects; null when what is left does not suffice.
  template <class T>
  [[nodiscard]] T* allocate(std::uint32_t count = 1) {
    static_assert(std::is_trivially_destructible_v<T>, "a tick arena destroys nothing");
    if (count > UINT32_MAX / sizeof(T)) return nullptr;
    return reinterpret_cast<T*>(allocate_bytes(static_cast<std::uint32_t>(count * sizeof(T)), alignof(T)));
  }

  [[nodiscard]] Checkpoint checkpoint() const { return {top_}; }
  /// Frees all that was allocated since.
  void reset_to_checkpoint(Checkpoint checkpoint) {
    high_water_ = std::max(high_water_, top_ - begin_);
    top_ = checkpoint.top;
  }
  void purge() { reset_to_checkpoint({begin_}); }

  [[nodiscard]] std::size_t used_bytes() const { return top_ - begin_; }
  [[nodiscard]] std::size_t capacity_bytes() const { return end_ - begin_; }
  /// The most that was in use at once, over the arena's life.
  [[nodiscard]] std::size_t high_water_bytes() const { return std::max(high_water_, used_bytes()); }

 private:
  std::uintptr_t begin_;
  std::uintptr_t top_;
  std::uintptr_t end_;
  std::size_t high_water_ = 0;
};

}  // namespace lockstep
