// SPDX-License-Identifier: Apache-2.0
#pragma once

/// futex(2), for threads that sleep on a word of their own: std::atomic::wait knows no timeout. Any thread.

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <ctime>

namespace lockstep {

/// Sleeps while `word` is `expected`, until futex_wake(), or for `timeout_ns` (< 0: no limit). It may also end for no
/// reason at all.
inline void futex_wait(std::atomic<std::uint32_t>& word, std::uint32_t expected, std::int64_t timeout_ns) {
  const timespec timeout{timeout_ns / 1'000'000'000, timeout_ns % 1'000'000'000};
  syscall(SYS_futex, &word, FUTEX_WAIT_PRIVATE, expected, timeout_ns < 0 ? nullptr : &timeout, nullptr, 0);
}

/// Wakes one thread that sleeps on `word`.
inline void futex_wake(std::atomic<std::uint32_t>& word) {
  syscall(SYS_futex, &word, FUTEX_WAKE_PRIVATE, 1, nullptr, nullptr, 0);
}

}  // namespace lockstep
