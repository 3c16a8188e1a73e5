// SPDX-License-Identifier: Apache-2.0
#pragma once

/// Breadcrumb: where an executor says which sequence number it is executing, in memory that outlives its process
/// (runtime/breadcrumbs.hpp). Leaving one costs three plain stores. The executor's thread writes; any thread reads.
///
///      0     8          16       128
///     +-----+----------+--------+
///     | seq | handlers | zeroes |
///     +-----+----------+--------+

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace lockstep {

struct alignas(128) Breadcrumb {
  std::atomic<std::uint64_t> seq{0};       ///< of the record that caused what is being executed; 0 is nothing
  std::atomic<std::uint64_t> handlers{0};  ///< executed so far

  // Relaxed: after a crash the kernel shows what this thread had stored in the order of its program, and a reader on
  // another thread only wants to see whether anything moves. The fences keep the compiler to that order.
  void enter(std::uint64_t cause_seq) {
    seq.store(cause_seq, std::memory_order_relaxed);
    std::atomic_signal_fence(std::memory_order_seq_cst);
  }
  void leave() {
    std::atomic_signal_fence(std::memory_order_seq_cst);
    seq.store(0, std::memory_order_relaxed);
    handlers.store(handlers.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
  }
};
static_assert(sizeof(Breadcrumb) == 128 && std::atomic<std::uint64_t>::is_always_lock_free);
static_assert(offsetof(Breadcrumb, handlers) == 8);

}  // namespace lockstep
