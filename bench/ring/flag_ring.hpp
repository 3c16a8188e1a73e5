// SPDX-License-Identifier: Apache-2.0
#pragma once

/// What an index ring's second cache line costs: a single-producer ring with a number in each slot, which the consumer
/// watches instead of a position. An item and its number are one hand-over where they share a line, but each item is
/// published by itself. Only the bench uses it: lockstep's agents hand over many frames at once.

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "runtime/ring/cache_line.hpp"

namespace lockstep::bench {

template <class T, std::size_t Capacity>
class FlagRing {
  static_assert((Capacity & (Capacity - 1)) == 0);

 public:
  [[nodiscard]] bool push(const T& item) {
    if (head_ - seen_tail_ >= Capacity) {
      seen_tail_ = tail_.load(std::memory_order_acquire);  // pairs with pop()'s store
      if (head_ - seen_tail_ >= Capacity) return false;
    }
    Slot& slot = slots_[head_ & (Capacity - 1)];
    slot.item = item;
    slot.number.store(++head_, std::memory_order_release);  // pairs with pop()'s load
    return true;
  }

  [[nodiscard]] bool pop(T& item) {
    const Slot& slot = slots_[popped_ & (Capacity - 1)];
    if (slot.number.load(std::memory_order_acquire) != popped_ + 1) return false;  // pairs with push()'s store
    item = slot.item;
    if (++popped_ % (Capacity / 4) == 0) tail_.store(popped_, std::memory_order_release);  // pairs with push()'s load
    return true;
  }

 private:
  struct alignas(cache_line_bytes) Slot {
    T item;
    std::atomic<std::uint64_t> number{0};  ///< of the item, counted from 1
  };

  Slot slots_[Capacity];
  alignas(cache_line_bytes) std::uint64_t head_ = 0;
  std::uint64_t seen_tail_ = 0;
  alignas(cache_line_bytes) std::uint64_t popped_ = 0;
  alignas(cache_line_bytes) std::atomic<std::uint64_t> tail_{0};
};

}  // namespace lockstep::bench
