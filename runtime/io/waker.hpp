// SPDX-License-Identifier: Apache-2.0
#pragma once

/// Waker: ends another thread's sleep, at the price of a system call only when that thread does sleep. One word holds
/// the whole agreement, so that there is no pair of flags to order against each other:
///
///     awake --begin_sleep (owner)--> asleep --wake (any)--> woken     the waker writes the eventfd
///     awake --wake (any)--> woken                                     no system call; the next begin_sleep refuses
///     any   --end_sleep (owner)--> awake
///
/// What a thread published before wake() is seen by the owner after the end_sleep() that took that wake. A wake() that
/// finds the word already taken is not lost: it leaves `woken` behind. begin_sleep and end_sleep belong to the owner,
/// wake to any thread. It does not sleep itself: the owner sleeps in whatever also watches descriptor().

#include <sys/eventfd.h>

#include <atomic>
#include <cstdint>

#include "base/descriptor.hpp"
#include "base/error.hpp"
#include "base/system_error.hpp"

namespace lockstep::io {

class Waker {
 public:
  /// An error when the process has no descriptor left.
  [[nodiscard]] Result<void> open() {
    event_.reset(::eventfd(0, EFD_CLOEXEC));
    if (!event_.is_open()) return system_failure("eventfd", "for a reactor", errno);
    return {};
  }

  /// The eventfd to watch while asleep; one that became readable is cleared by reading its 8 bytes.
  [[nodiscard]] int descriptor() const { return event_.get(); }

  /// False when a wake() has come since the last end_sleep(): do not sleep.
  [[nodiscard]] bool begin_sleep() {
    std::uint32_t expected = awake;
    // Pairs with the exchange in wake(): acquire, so that a refused sleeper sees what the waker published.
    return state_.compare_exchange_strong(expected, asleep, std::memory_order_acq_rel, std::memory_order_acquire);
  }

  void end_sleep() {
    // Pairs with the exchange in wake(): acquires what each waker up to now published.
    state_.exchange(awake, std::memory_order_acq_rel);
  }

  void wake() {
    // Pairs with begin_sleep() and end_sleep(): releases what the caller published before.
    if (state_.exchange(woken, std::memory_order_acq_rel) != asleep) return;
    wakes_.fetch_add(1, std::memory_order_relaxed);
    const std::uint64_t one = 1;
    // The counter cannot overflow: one write at most per sleep, and each sleep reads it.
    [[maybe_unused]] const ssize_t written = ::write(event_.get(), &one, sizeof one);
  }

  /// wake() calls that cost a system call.
  [[nodiscard]] std::uint64_t wakes() const { return wakes_.load(std::memory_order_relaxed); }

 private:
  static constexpr std::uint32_t awake = 0, asleep = 1, woken = 2;

  alignas(64) std::atomic<std::uint32_t> state_{awake};
  std::atomic<std::uint64_t> wakes_{0};
  Descriptor event_;
};

}  // namespace lockstep::io
