// SPDX-License-Identifier: Apache-2.0
#pragma once

/// The peers among allocators, in one process with glibc's: they are linked behind it, so that malloc stays glibc's,
/// and are called by the names that only they have.

#include <cstddef>

namespace lockstep::bench {

struct HeapFunctions {
  void* (*allocate)(std::size_t bytes);
  void (*free)(void* block);
};

/// These end the program when malloc is not glibc's after all, as with LD_PRELOAD.
[[nodiscard]] HeapFunctions glibc_malloc();
[[nodiscard]] HeapFunctions jemalloc();
[[nodiscard]] HeapFunctions mimalloc();

}  // namespace lockstep::bench
