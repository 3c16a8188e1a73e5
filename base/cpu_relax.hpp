// SPDX-License-Identifier: Apache-2.0
#pragma once

/// The hint that a loop is waiting for another core. Any thread.

namespace lockstep {

inline void cpu_relax() {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

}  // namespace lockstep
