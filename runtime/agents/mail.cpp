// SPDX-License-Identifier: Apache-2.0
#include "runtime/agents/mail.hpp"

#include <algorithm>
#include <cstring>
#include <tuple>

namespace lockstep {

MailRings::MailRings(std::uint32_t executors, std::size_t ring_bytes) : executors_(executors) {
  rings_.resize(std::size_t{executors} * executors);
  for (std::uint32_t from = 0; from < executors; ++from) {
    for (std::uint32_t to = 0; to < executors; ++to) {
      if (from != to) rings_[from * executors + to] = std::make_unique<ByteRing>(ring_bytes);
    }
  }
}

void Mailbox::add(std::uint32_t shard, std::span<const std::byte> frame) {
  std::byte* const kept = take(frame.size());
  std::memcpy(kept, frame.data(), frame.size());
  const auto& effect = *reinterpret_cast<const EffectHeader*>(kept);
  entries_.push_back({shard, effect.cause_seq, effect.sender, effect.counter, &effect});
}

void Mailbox::sort() {
  std::ranges::sort(entries_, [](const Entry& a, const Entry& b) {
    return std::tie(a.shard, a.cause_seq, a.sender, a.counter) < std::tie(b.shard, b.cause_seq, b.sender, b.counter);
  });
}

void Mailbox::clear() {
  entries_.clear();
  chunk_ = 0;
  used_ = 0;
}

std::byte* Mailbox::take(std::size_t bytes) {
  constexpr std::size_t alignment = 16;
  const std::size_t size = (bytes + alignment - 1) & ~(alignment - 1);
  while (chunk_ < chunks_.size() && chunks_[chunk_].size - used_ < size) {
    ++chunk_;
    used_ = 0;
  }
  if (chunk_ == chunks_.size()) {
    const std::size_t fresh = std::max(size, chunk_bytes);
    chunks_.push_back({std::make_unique_for_overwrite<std::byte[]>(fresh), fresh});
  }
  std::byte* const taken = chunks_[chunk_].bytes.get() + used_;
  used_ += size;
  return taken;
}

}  // namespace lockstep
