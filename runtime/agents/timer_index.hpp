// SPDX-License-Identifier: Apache-2.0
#pragma once

/// TimerIndex: an executor's timers by (deadline, actor, id), the order in which they are due. It is derived from what
/// the actors' images hold, never hashed and never undone: an entry whose timer was cancelled or undone stays until it
/// comes up, and finds no timer then. One thread.

#include <algorithm>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

#include "lockstep/address.hpp"
#include "lockstep/timers.hpp"

namespace lockstep {

class TimerIndex {
 public:
  struct Entry {
    std::int64_t deadline_ns = 0;
    Address actor;
    TimerId id = TimerId::none;
    friend auto operator<=>(const Entry&, const Entry&) = default;
  };

  TimerIndex() { heap_.reserve(first_capacity); }

  void add(const Entry& entry) {
    heap_.push_back(entry);
    std::ranges::push_heap(heap_, std::greater{});
  }
  [[nodiscard]] bool empty() const { return heap_.empty(); }
  [[nodiscard]] const Entry& earliest() const { return heap_.front(); }
  Entry pop() {
    std::ranges::pop_heap(heap_, std::greater{});
    const Entry entry = heap_.back();
    heap_.pop_back();
    return entry;
  }

  /// Drops the entries for which alive(entry) is false, once there are twice as many as when it last looked; so memory
  /// follows the timers there are, not those there were.
  template <class Alive>
  void sweep(Alive&& alive) {
    if (heap_.size() < next_sweep_) return;
    std::erase_if(heap_, [&](const Entry& entry) { return !alive(entry); });
    std::ranges::make_heap(heap_, std::greater{});
    next_sweep_ = std::max(first_capacity, 2 * heap_.size());
  }

 private:
  static constexpr std::size_t first_capacity = 1024;

  std::vector<Entry> heap_;
  std::size_t next_sweep_ = first_capacity;
};

}  // namespace lockstep
