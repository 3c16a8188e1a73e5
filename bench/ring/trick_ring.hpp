// SPDX-License-Identifier: Apache-2.0
#pragma once

/// SpscRing's way of working with each of its tricks a switch, so that the bench can say what each is worth. Only the
/// bench uses it.

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "runtime/ring/cache_line.hpp"

namespace lockstep::bench {

struct Tricks {
  /// A side remembers how far the other was, and looks again only when that says full or empty.
  bool remembers = true;
  /// What only one side uses does not lie on the line that it publishes for the other to read.
  bool apart = true;
  /// The two sides' positions lie on lines of their own at all.
  bool own_lines = true;
  /// Acquire and release, which cost nothing on x86, instead of sequential consistency, whose store is a full fence.
  bool weak_orders = true;
  /// A position is published once in 64 items, or when the side has nothing more to do.
  bool lazy = true;
};

template <class Item, std::size_t Capacity, Tricks tricks>
class TrickRing {
  static_assert((Capacity & (Capacity - 1)) == 0);

 public:
  bool push(const Item& item) {
    if (is_full()) {
      pushed_all();
      return false;
    }
    slots_[producer_.next++ & (Capacity - 1)] = item;
    if (!tricks.lazy || producer_.next % lazy_items == 0) publish(tail_, producer_);
    return true;
  }
  void pushed_all() {
    if (tail_.load(std::memory_order_relaxed) != producer_.next) publish(tail_, producer_);
  }

  bool pop(Item& item) {
    if (is_empty()) {
      popped_all();
      return false;
    }
    item = slots_[consumer_.next++ & (Capacity - 1)];
    if (!tricks.lazy || consumer_.next % lazy_items == 0) publish(head_, consumer_);
    return true;
  }
  void popped_all() {
    if (head_.load(std::memory_order_relaxed) != consumer_.next) publish(head_, consumer_);
  }

 private:
  static constexpr std::size_t lazy_items = 64;
  static constexpr std::size_t published_alignment = tricks.own_lines ? cache_line_bytes : alignof(std::uint64_t);
  static constexpr std::size_t own_alignment =
      tricks.own_lines && tricks.apart ? cache_line_bytes : alignof(std::uint64_t);
  static constexpr std::memory_order store_order =
      tricks.weak_orders ? std::memory_order_release : std::memory_order_seq_cst;
  static constexpr std::memory_order load_order =
      tricks.weak_orders ? std::memory_order_acquire : std::memory_order_seq_cst;

  /// Touched by one side only.
  struct Side {
    std::uint64_t next = 0;
    std::uint64_t seen = 0;  ///< the other side's published position
  };

  /// Pairs with the other side's look().
  static void publish(std::atomic<std::uint64_t>& position, const Side& side) {
    position.store(side.next, store_order);
  }
  /// Pairs with the other side's publish().
  static void look(const std::atomic<std::uint64_t>& other, Side& side) { side.seen = other.load(load_order); }

  bool is_full() {
    if (tricks.remembers && producer_.next - producer_.seen != Capacity) return false;
    look(head_, producer_);
    return producer_.next - producer_.seen == Capacity;
  }
  bool is_empty() {
    if (tricks.remembers && consumer_.next != consumer_.seen) return false;
    look(tail_, consumer_);
    return consumer_.next == consumer_.seen;
  }

  alignas(published_alignment) std::atomic<std::uint64_t> tail_{0};
  alignas(own_alignment) Side producer_;
  alignas(published_alignment) std::atomic<std::uint64_t> head_{0};
  alignas(own_alignment) Side consumer_;
  alignas(cache_line_bytes) Item slots_[Capacity] = {};
};

}  // namespace lockstep::bench
