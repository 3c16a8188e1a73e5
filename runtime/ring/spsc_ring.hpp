// SPDX-License-Identifier: Apache-2.0
#pragma once

/// SpscRing: a bounded queue of small fixed-size items from one thread to one other. Wait-free: plain loads and stores
/// with acquire and release, no read-modify-write, no lock, no allocation after construction. Items come out in the
/// order they went in, none twice, none lost. For frames of varying length see byte_ring.hpp.
///
/// Exactly one thread at a time is the producer and one the consumer (they may be the same); handing a side over to
/// another thread needs a happens-before edge of the caller's own.
///
/// Publishing is what costs (the line travels to the other core), so there are three ways to use it, fastest last:
///
///     push / pop                     one item, visible at once
///     push_lazy … publish            one item each, visible after lazy_items at most, or at publish();
///     pop_lazy … flush               call those once a loop turn
///     claim → write → commit         a run of slots in place, visible at commit()
///     peek → read → release          a run of items in place, slots free at release()
///
/// It does not block, does not wake anybody, and does not call constructors or destructors: items are plain bytes.

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>
#include <span>
#include <type_traits>

#include "base/assert.hpp"
#include "runtime/ring/ring_sides.hpp"

namespace lockstep {

template <class T>
  requires std::is_trivially_copyable_v<T> && std::is_default_constructible_v<T>
class SpscRing {
 public:
  /// A side that works lazily publishes by itself at each multiple of this, so that the other side has work meanwhile.
  static constexpr std::size_t lazy_items = 64;

  /// `capacity_items` is rounded up to a power of two; all memory is taken, and touched, here.
  explicit SpscRing(std::size_t capacity_items) : storage_(allocate(std::bit_ceil(capacity_items))) {
    LOCKSTEP_ASSERT(capacity_items >= 1, "a ring needs at least one slot");
    producer_.buffer = consumer_.buffer = storage_.get();
    producer_.mask = consumer_.mask = std::bit_ceil(capacity_items) - 1;
    producer_.limit = capacity();
  }
  SpscRing(const SpscRing&) = delete;
  SpscRing& operator=(const SpscRing&) = delete;

  [[nodiscard]] std::size_t capacity() const { return producer_.mask + 1; }

  // Producer.

  /// False when the ring is full. Publishes this item and all lazy ones before it.
  [[nodiscard]] bool push(const T& item) {
    if (is_full()) return false;
    producer_.buffer[producer_.next++ & producer_.mask] = item;
    producer_.publish(tail_);
    return true;
  }

  /// False when the ring is full; then all earlier items have been published, so that the consumer can make room.
  [[nodiscard]] bool push_lazy(const T& item) {
    if (is_full()) {
      publish();
      return false;
    }
    producer_.buffer[producer_.next++ & producer_.mask] = item;
    if (producer_.next % lazy_items == 0) producer_.publish(tail_);
    return true;
  }

  /// Makes what was pushed lazily visible; nothing when there is none.
  void publish() { producer_.publish_if_behind(tail_); }

  /// Up to `items` free slots that lie side by side; fewer at the end of the array or when nearly full, none when full.
  /// The slots hold what was there a lap ago. A second claim without a commit gives the same slots again.
  [[nodiscard]] std::span<T> claim(std::size_t items) {
    if (producer_.available() < items) producer_.load(head_, capacity());
    return run(producer_, std::min<std::uint64_t>(items, producer_.available()));
  }

  /// Publishes the first `items` slots of the last claim, which the caller has written.
  void commit(std::size_t items) {
    LOCKSTEP_ASSERT(items <= producer_.available(), "commit of more slots than were claimed");
    producer_.next += items;
    producer_.publish(tail_);
  }

  // Consumer.

  /// False when the ring is empty. Frees this slot and all that were lazily popped before it.
  [[nodiscard]] bool pop(T& item) {
    if (is_empty()) return false;
    item = consumer_.buffer[consumer_.next++ & consumer_.mask];
    consumer_.publish(head_);
    return true;
  }

  /// False when the ring is empty; then all slots popped earlier have been freed.
  [[nodiscard]] bool pop_lazy(T& item) {
    if (is_empty()) {
      flush();
      return false;
    }
    item = consumer_.buffer[consumer_.next++ & consumer_.mask];
    if (consumer_.next % lazy_items == 0) consumer_.publish(head_);
    return true;
  }

  /// Frees the slots that were popped lazily; nothing when there are none.
  void flush() { consumer_.publish_if_behind(head_); }

  /// Up to `items` items that lie side by side, oldest first; fewer at the end of the array, none when empty.
  [[nodiscard]] std::span<const T> peek(std::size_t items) {
    if (consumer_.available() < items) consumer_.load(tail_, 0);
    return run(consumer_, std::min<std::uint64_t>(items, consumer_.available()));
  }

  /// Frees the first `items` slots of the last peek.
  void release(std::size_t items) {
    LOCKSTEP_ASSERT(items <= consumer_.available(), "release of more items than were peeked");
    consumer_.next += items;
    consumer_.publish(head_);
  }

  /// Whether a pop would find nothing. Before sleeping on the answer, set the sleep flag and put a seq_cst fence
  /// between the two; the producer needs one between publishing and reading the flag.
  [[nodiscard]] bool is_empty() {
    if (consumer_.available() != 0) return false;
    consumer_.load(tail_, 0);
    return consumer_.available() == 0;
  }

 private:
  using Side = ring_detail::Side<T>;

  struct Deallocate {
    void operator()(T* slots) const { ::operator delete(slots, slot_alignment); }
  };
  static constexpr std::align_val_t slot_alignment{std::max(alignof(T), cache_line_bytes)};

  static T* allocate(std::size_t capacity) {
    T* slots = static_cast<T*>(::operator new(capacity * sizeof(T), slot_alignment));
    std::uninitialized_value_construct_n(slots, capacity);
    return slots;
  }

  [[nodiscard]] bool is_full() {
    if (producer_.available() != 0) return false;
    producer_.load(head_, capacity());
    return producer_.available() == 0;
  }

  /// The slots from `next` on, `items` of them or as many as come before the end of the array.
  [[nodiscard]] static std::span<T> run(const Side& side, std::uint64_t items) {
    const std::uint64_t start = side.next & side.mask;
    return {side.buffer + start, std::min(items, side.mask + 1 - start)};
  }

  Side producer_;
  ring_detail::PublishedPosition tail_;
  Side consumer_;
  ring_detail::PublishedPosition head_;
  std::unique_ptr<T, Deallocate> storage_;
};

}  // namespace lockstep
