// SPDX-License-Identifier: Apache-2.0
#pragma once

/// What the two rings of this folder have in common: positions that only ever grow, and who may touch which.
///
///     line 0  producer's own   next, the head it last saw, what it has published
///     line 1  tail             stored by the producer, loaded by the consumer
///     line 2  consumer's own   next, the tail it last saw, what it has published
///     line 3  head             stored by the consumer, loaded by the producer
///
/// A side works on its own line and touches the other side's published line only when the copy it remembers says "full"
/// or "empty". Its own line is apart from the line it publishes, because a line that the other core has just read costs
/// a cache miss to write: work that is not yet published stays free of them.

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
  std::uint64_t mask = 0;       ///< capacity - 1
  std::uint64_t next = 0;       ///< the position this side works on next
  std::uint64_t seen = 0;       ///< the other side's published position, as last loaded
  std::uint64_t published = 0;  ///< this side's published position, as last stored

  /// Pairs with the other side's load() of `position`: what was written to, or read from, the buffer before is done.
  void publish(PublishedPosition& position) {
    position.value.store(next, std::memory_order_release);
    published = next;
  }
  /// Pairs with the other side's publish().
  void load(const PublishedPosition& position) { seen = position.value.load(std::memory_order_acquire); }
};

}  // namespace lockstep::ring_detail
