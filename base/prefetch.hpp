// SPDX-License-Identifier: Apache-2.0
#pragma once

/// A hint that this core is about to write to a cache line that another one has read: the line becomes its own while
/// there is still something else to do, so that the write, and what is published behind it, does not wait for that.
/// Any address will do; nothing is read or changed. Any thread.

namespace lockstep {

inline void prefetch_for_write(const void* address) {
#if defined(__x86_64__)
  // By hand, as __builtin_prefetch() makes it a read unless told of the CPU. Those that do not know it pass over it.
  asm volatile("prefetchw (%0)" : : "r"(address));
#else
  __builtin_prefetch(address, 1);
#endif
}

}  // namespace lockstep
