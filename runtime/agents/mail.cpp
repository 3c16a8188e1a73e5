// SPDX-License-Identifier: Apache-2.0
#include "runtime/agents/mail.hpp"

#include <algorithm>
#include <cstring>
#include <tuple>

#include "base/assert.hpp"
#include "runtime/agents/host.hpp"

namespace lockstep {
namespace {

constexpr std::size_t first_entries = 4096;

/// No round has more mail than all shards may emit in a batch, and a trap, which is no longer, for each message of the
/// round before.
std::size_t most_bytes(const Genesis& genesis) {
  return std::size_t{2} * genesis.shards * genesis.shard_effect_bytes;
}

}  // namespace

MailRings::MailRings(std::uint32_t executors, std::size_t ring_bytes) : executors_(executors) {
  rings_.resize(std::size_t{executors} * executors);
  for (std::uint32_t from = 0; from < executors; ++from) {
    for (std::uint32_t to = 0; to < executors; ++to) {
      if (from != to) rings_[from * executors + to] = std::make_unique<ByteRing>(ring_bytes);
    }
  }
}

Mailbox::Mailbox(const Genesis& genesis)
    : memory_(or_stop(Region::reserve(most_bytes(genesis), "mail of a round"))), frames_(memory_.bytes()) {
  entries_.reserve(first_entries);
}

std::uint64_t Mailbox::reserved_bytes(const Genesis& genesis) {
  return most_bytes(genesis);
}

void Mailbox::add(std::uint32_t shard, std::span<const std::byte> frame) {
  std::byte* const kept = frames_.allocate_bytes(static_cast<std::uint32_t>(frame.size()));
  LOCKSTEP_ASSERT(kept != nullptr, "the shards sent more in a round than their budgets allow");
  std::memcpy(kept, frame.data(), frame.size());
  const auto& effect = *reinterpret_cast<const EffectHeader*>(kept);
  entries_.push_back({shard, effect.cause_seq, effect.sender(), effect.counter, entries_.size(), &effect});
}

void Mailbox::sort() {
  std::ranges::sort(entries_, [](const Entry& a, const Entry& b) {
    return std::tie(a.shard, a.cause_seq, a.sender, a.counter, a.place) <
           std::tie(b.shard, b.cause_seq, b.sender, b.counter, b.place);
  });
}

void Mailbox::clear() {
  entries_.clear();
  frames_.purge();
}

}  // namespace lockstep
