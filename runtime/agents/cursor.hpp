// SPDX-License-Identifier: Apache-2.0
#pragma once

/// Cursor: how far one thread has come in the run of batches; everyone may read it, one thread moves it forward. Each
/// lies on its own cache lines, so that moving one does not disturb the readers of another. 128 bytes, since x86
/// prefetches lines in pairs.

#include <atomic>
#include <cstdint>

namespace lockstep {

class alignas(128) Cursor {
 public:
  explicit Cursor(std::uint64_t start = 0) : value_(start) {}

  /// Says that everything up to `index` is done. Owner only. The release pairs with the acquire in read(): who sees the
  /// index sees all that was written before it.
  void publish(std::uint64_t index) { value_.store(index, std::memory_order_release); }
  [[nodiscard]] std::uint64_t read() const { return value_.load(std::memory_order_acquire); }

 private:
  std::atomic<std::uint64_t> value_;
};

}  // namespace lockstep
