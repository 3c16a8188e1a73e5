// SPDX-License-Identifier: Apache-2.0
#include "runtime/agents/page_quota.hpp"

#include <algorithm>
#include <bit>
#include <cstring>

#include "base/assert.hpp"
#include "lockstep/arena.hpp"
#include "runtime/agents/host.hpp"

namespace lockstep {

PageQuota::PageQuota(std::uint64_t bytes)
    : capacity_(std::max<std::uint64_t>(bytes / page_bytes, 1)),
      memory_(or_stop(Region::reserve(capacity_ * page_bytes, "pages kept for snapshots"))),
      entries_(std::bit_ceil(2 * capacity_)) {
  free_.reserve(capacity_);
  clear();
}

void PageQuota::clear() {
  std::ranges::fill(entries_, Entry{});
  held_ = 0;
  free_.clear();
  // The lowest is taken first, so that a small use touches little memory.
  for (std::size_t copy = capacity_; copy > 0; --copy) free_.push_back(static_cast<std::uint32_t>(copy - 1));
}

std::size_t PageQuota::home_of(const std::byte* page) const {
  const auto number = reinterpret_cast<std::uintptr_t>(page) / page_bytes;
  return (number * 0x9E3779B97F4A7C15U >> 20U) & (entries_.size() - 1);  // Fibonacci hashing: pages come in runs
}

/// Where the page is, or would be.
std::size_t PageQuota::place_of(const std::byte* page) const {
  std::size_t at = home_of(page);
  while (entries_[at].page != nullptr && entries_[at].page != page) at = (at + 1) & (entries_.size() - 1);
  return at;
}

std::byte* PageQuota::copy_at(std::uint32_t copy) const {
  return memory_.data() + std::size_t{copy} * page_bytes;
}

bool PageQuota::keep(const std::byte* page) {
  if (free_.empty()) return false;
  Entry& entry = entries_[place_of(page)];
  LOCKSTEP_ASSERT(entry.page == nullptr, "a page was kept twice");
  entry = {page, free_.back()};
  free_.pop_back();
  std::memcpy(copy_at(entry.copy), page, page_bytes);
  ++held_;
  return true;
}

const std::byte* PageQuota::find(const std::byte* page) const {
  const Entry& entry = entries_[place_of(page)];
  return entry.page == nullptr ? nullptr : copy_at(entry.copy);
}

void PageQuota::release(const std::byte* page) {
  const std::size_t mask = entries_.size() - 1;
  std::size_t gap = place_of(page);
  if (entries_[gap].page == nullptr) return;
  free_.push_back(entries_[gap].copy);
  --held_;
  for (std::size_t at = (gap + 1) & mask; entries_[at].page != nullptr; at = (at + 1) & mask) {
    // An entry may move back to the gap unless its home lies behind it.
    if (((at - home_of(entries_[at].page)) & mask) < ((at - gap) & mask)) continue;
    entries_[gap] = entries_[at];
    gap = at;
  }
  entries_[gap] = {};
}

}  // namespace lockstep
