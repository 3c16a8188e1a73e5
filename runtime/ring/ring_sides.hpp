// SPDX-License-Identifier: Apache-2.0
#pragma once

/// What the two rings of this folder have in common: positions that only ever grow, and who may touch which.
///
///     line 0  producer's own   next, and its limit: the head it last saw plus the capacity
///     line 1  tail             stored by the producer, loaded by the consumer
///     line 2  consumer's own   next, and its limit: the tail it last saw
///     line 3  head             stored by the consumer, loaded by the producer
///
/// A side works on its own line and loads the other side's published line only when its limit says "full" or "empty".
/// Its own line is apart from the line it publishes, because a line that the other core has just read costs a cache
/// miss to write: work that is not yet published stays free of them.

#include <atomic>
#include <cstdint>

#include "runtime/ring/cache_line.hpp"

namespace lockstep::ring_detail {

/// How far a side has got, visible to the other side; on a line of its own.
struct alignas(cache_line_bytes) PublishedPosition {
  std::atomic<std::uint64_t> value{0};
};

/// What one side knows. `Element` is what its buffer is made of.
template <class Element>
struct alignas(cache_line_bytes) Side {
  Element* buffer = nullptr;
  std::uint64_t mask = 0;   ///< capacity - 1
  std::uint64_t next = 0;   ///< the position this side works on next
  std::uint64_t limit = 0;  ///< the position it may not reach yet, as far as it knows; at most the true one

  [[nodiscard]] std::uint64_t available() const { return limit - next; }

  /// Pairs with the other side's load(): what was written to, or read from, the buffer before is done.
  void publish(PublishedPosition& own) const { own.value.store(next, std::memory_order_release); }
  void publish_if_behind(PublishedPosition& own) const {
    // Only this side stores it, so a relaxed load reads what it stored last; comparing spares the other core a miss.
    if (own.value.load(std::memory_order_relaxed) != next) publish(own);
  }
  /// Pairs with the other side's publish(). `lead` is how far this side may be before the other: the producer's is the
  /// capacity, the consumer's 0.
  void load(const PublishedPosition& other, std::uint64_t lead) {
    limit = other.value.load(std::memory_order_acquire) + lead;
  }
};

}  // namespace lockstep::ring_detail
