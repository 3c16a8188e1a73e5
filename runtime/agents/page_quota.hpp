// SPDX-License-Identifier: Apache-2.0
#pragma once

/// PageQuota: copies of pages as they were, by the page's address, in a fixed amount of memory. What it holds when full
/// stays; there is only no room for more. Nothing is allocated after construction, and of the memory only what was ever
/// used is taken. A hash table of open addressing, at most half full, whose removals close the gap (Knuth 6.4 R).
///
/// One thread.

#include <cstddef>
#include <cstdint>
#include <vector>

#include "runtime/memory/region.hpp"

namespace lockstep {

class PageQuota {
 public:
  /// Room for `bytes` / 4096 pages, at least one. A host without the address space ends the process with a line.
  explicit PageQuota(std::uint64_t bytes);

  /// Copies a page that is not held yet; false when there is no room.
  [[nodiscard]] bool keep(const std::byte* page);
  /// The copy of a page; null when it is not held.
  [[nodiscard]] const std::byte* find(const std::byte* page) const;
  /// Forgets a page; nothing when it is not held.
  void release(const std::byte* page);
  /// Forgets all.
  void clear();

  [[nodiscard]] std::size_t held() const { return held_; }
  [[nodiscard]] std::size_t capacity() const { return capacity_; }

 private:
  struct Entry {
    const std::byte* page = nullptr;  ///< null: free
    std::uint32_t copy = 0;
  };

  [[nodiscard]] std::size_t home_of(const std::byte* page) const;
  [[nodiscard]] std::size_t place_of(const std::byte* page) const;
  [[nodiscard]] std::byte* copy_at(std::uint32_t copy) const;

  std::size_t capacity_;
  Region memory_;
  std::vector<Entry> entries_;  // a power of two
  std::vector<std::uint32_t> free_;
  std::size_t held_ = 0;
};

}  // namespace lockstep
