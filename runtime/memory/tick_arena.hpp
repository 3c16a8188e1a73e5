// SPDX-License-Identifier: Apache-2.0
#pragma once

/// TickArena: a bump allocator for what lives no longer than one batch: frames, sends, builders. Allocation is an add
/// and a compare; everything goes at once, in O(1), by purge() or back to a checkpoint(). Nothing is destroyed, so only
/// trivially destructible objects may lie here. It never grows: its owner sizes it from the limits in genesis, and when
/// it is full it says so with null. Memory is handed out as it is, not zeroed.
///
/// Every allocation takes a multiple of 16 bytes, so the next one is aligned without a computation between the two: a
/// run of allocations is one dependent add each.
///
/// One thread; the memory is the owner's.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <type_traits>
#include <utility>

namespace lockstep {

class TickArena {
 public:
  /// A place to go back to, with all that was allocated before it.
  struct Checkpoint {
    std::byte* top;
  };

  /// Uses `memory` from its first multiple of 16 to its last.
  explicit TickArena(std::span<std::byte> memory)
      : begin_(aligned(memory.data(), granule_bytes)),
        top_(begin_),
        end_(begin_ + whole_granules(memory.size(), static_cast<std::size_t>(begin_ - memory.data()))) {}
  TickArena(const TickArena&) = delete;
  TickArena& operator=(const TickArena&) = delete;

  /// Null when what is left does not suffice. `alignment` is a power of two.
  [[nodiscard]] std::byte* allocate_bytes(std::uint32_t bytes, std::uint32_t alignment = 16) {
    std::byte* const start = alignment <= granule_bytes ? top_ : aligned(top_, alignment);
    const std::size_t taken = (std::size_t{bytes} + granule_bytes - 1) & ~(granule_bytes - 1);
    // Stored before it is known to fit, and taken back if not: a store that does not depend on the outcome is one the
    // compiler may keep in a register through a loop of allocations.
    std::byte* const old_top = std::exchange(top_, start + taken);
    if (reinterpret_cast<std::uintptr_t>(top_) > reinterpret_cast<std::uintptr_t>(end_)) [[unlikely]] {
      top_ = old_top;
      return nullptr;
    }
    return start;
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
    high_water_ = std::max(high_water_, used_bytes());
    top_ = checkpoint.top;
  }
  void purge() { reset_to_checkpoint({begin_}); }

  [[nodiscard]] std::size_t used_bytes() const { return static_cast<std::size_t>(top_ - begin_); }
  [[nodiscard]] std::size_t capacity_bytes() const { return static_cast<std::size_t>(end_ - begin_); }
  /// The most that was in use at once, over the arena's life.
  [[nodiscard]] std::size_t high_water_bytes() const { return std::max(high_water_, used_bytes()); }

 private:
  static constexpr std::size_t granule_bytes = 16;

  [[nodiscard]] static std::byte* aligned(std::byte* place, std::size_t alignment) {
    return place + (-reinterpret_cast<std::uintptr_t>(place) & (alignment - 1));
  }
  [[nodiscard]] static std::size_t whole_granules(std::size_t bytes, std::size_t skipped) {
    return bytes < skipped ? 0 : (bytes - skipped) & ~(granule_bytes - 1);
  }

  std::byte* begin_;
  std::byte* top_;
  std::byte* end_;
  std::size_t high_water_ = 0;
};

}  // namespace lockstep
