// SPDX-License-Identifier: Apache-2.0
#pragma once

/// HeapCount: what a program takes from operator new, for tests of memory: how often, how much it holds, and how much
/// it held at most. A program that lists heap_count.cpp among its sources has its operator new and delete replaced by
/// ones that count, which is why that file is in no library. What comes from malloc or mmap itself is not counted.
///
/// Any thread counts; one at a time asks.

#include <cstdint>

namespace lockstep {

struct HeapCount {
  std::uint64_t allocations = 0;  ///< so far
  std::uint64_t live_bytes = 0;   ///< held now
  std::uint64_t peak_bytes = 0;   ///< held at most since the program began, or since reset_heap_peak()
};
[[nodiscard]] HeapCount heap_count();

/// The peak is what is held now.
void reset_heap_peak();

}  // namespace lockstep
