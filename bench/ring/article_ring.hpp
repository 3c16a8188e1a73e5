// SPDX-License-Identifier: Apache-2.0
#pragma once

/// The baseline: the single-producer ring that the literature on deterministic actor runtimes describes. Capacity fixed
/// at compile time, one item at a time, each side's index and its copy of the other's on one line, every operation
/// published at once. Only the bench uses it.

#include <atomic>
#include <cstddef>

#include "runtime/ring/cache_line.hpp"

namespace lockstep::bench {

template <class T, std::size_t Capacity>
class ArticleRing {
  static_assert((Capacity & (Capacity - 1)) == 0);

 public:
  [[nodiscard]] bool push(const T& item) {
    const std::size_t head = head_.load(std::memory_order_relaxed);
    if (head - seen_tail_ >= Capacity) {
      seen_tail_ = tail_.load(std::memory_order_acquire);  // pairs with pop()'s store
      if (head - seen_tail_ >= Capacity) return false;
    }
    slots_[head & (Capacity - 1)] = item;
    head_.store(head + 1, std::memory_order_release);  // pairs with pop()'s load
    return true;
  }

  [[nodiscard]] bool pop(T& item) {
    const std::size_t tail = tail_.load(std::memory_order_relaxed);
    if (tail == seen_head_) {
      seen_head_ = head_.load(std::memory_order_acquire);  // pairs with push()'s store
      if (tail == seen_head_) return false;
    }
    item = slots_[tail & (Capacity - 1)];
    tail_.store(tail + 1, std::memory_order_release);  // pairs with push()'s load
    return true;
  }

 private:
  alignas(cache_line_bytes) T slots_[Capacity];
  alignas(cache_line_bytes) std::atomic<std::size_t> head_{0};
  std::size_t seen_tail_ = 0;
  alignas(cache_line_bytes) std::atomic<std::size_t> tail_{0};
  std::size_t seen_head_ = 0;
};

}  // namespace lockstep::bench
