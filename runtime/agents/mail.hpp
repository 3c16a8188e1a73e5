// SPDX-License-Identifier: Apache-2.0
#pragma once

/// Mail: how messages from actor to actor travel between executors and wait for their round.
///
/// A frame on a mail ring is an effect (EffectHeader and payload, lockstep/effects.hpp): a message to an actor, or a
/// reply or trap on its way to the shard that its request came to; or it is a RoundMarker that closes its sender's
/// round. Every executor has one ring to every other; what it sends to
/// its own shards goes into its mailbox at once.
///
/// A Mailbox holds the mail of one round until it is handled, sorted by (shard, cause, sender, send counter): the order
/// that does not depend on who ran where. One thread.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "lockstep/effects.hpp"
#include "runtime/agents/genesis.hpp"
#include "runtime/memory/region.hpp"
#include "runtime/memory/tick_arena.hpp"
#include "runtime/ring/byte_ring.hpp"

namespace lockstep {

/// The last frame of a round on a mail ring.
struct RoundMarker {
  std::uint64_t round = 0;  ///< counted over the executor's whole life
  std::uint64_t sent = 0;   ///< whether the sender sent any message in the round, to itself included
};
static_assert(sizeof(RoundMarker) == 16 && sizeof(RoundMarker) < sizeof(EffectHeader));

[[nodiscard]] inline std::uint64_t address_hash(const Address& address) {
  static_assert(sizeof(Address) == 16 && offsetof(Address, key) == 8);
  return xxh3_64_of(std::uint64_t{address.zero} << 32 | address.type, address.key);
}
[[nodiscard]] constexpr std::uint32_t shard_of(std::uint64_t hash, std::uint32_t shards) {
  // Where they are a power of two, as by default, without waiting for a division.
  const bool is_power = (shards & (shards - 1)) == 0;
  return static_cast<std::uint32_t>(is_power ? hash & (shards - 1) : hash % shards);
}
/// Where an actor lives; found once a message, since it costs a hash and a division.
struct Home {
  std::uint64_t hash = 0;   ///< address_hash: the shard's directory is by it
  std::uint32_t shard = 0;  ///< hash mod shards
};
[[nodiscard]] inline Home home_of(const Address& address, std::uint32_t shards) {
  const std::uint64_t hash = address_hash(address);
  return {hash, shard_of(hash, shards)};
}
/// The shard that an effect which travels by mail is for.
[[nodiscard]] inline std::uint32_t receiving_shard(const EffectHeader& effect, std::uint32_t shards) {
  return effect.kind == EffectKind::send ? home_of(effect.target(), shards).shard : effect.origin;
}
[[nodiscard]] constexpr std::uint32_t executor_of(std::uint32_t shard, std::uint32_t executors) {
  return shard % executors;
}

/// The rings between `executors`, one for each ordered pair. Each must hold the longest message twice.
class MailRings {
 public:
  MailRings(std::uint32_t executors, std::size_t ring_bytes);

  [[nodiscard]] std::uint32_t executors() const { return executors_; }
  /// `from` and `to` differ.
  [[nodiscard]] ByteRing& ring(std::uint32_t from, std::uint32_t to) { return *rings_[from * executors_ + to]; }

 private:
  std::uint32_t executors_;
  std::vector<std::unique_ptr<ByteRing>> rings_;
};

class Mailbox {
 public:
  struct Entry {
    std::uint32_t shard = 0;
    std::uint64_t cause_seq = 0;
    Address sender;
    std::uint64_t counter = 0;
    std::size_t place = 0;  ///< among all that was added: parts what one sender made under one counter, as traps are
    const EffectHeader* effect = nullptr;  ///< the payload lies behind it, 16-aligned
  };

  /// Room for the mail of a round, as genesis bounds it; of which only what is used takes memory.
  explicit Mailbox(const Genesis& genesis);
  /// Address space that each takes.
  [[nodiscard]] static std::uint64_t reserved_bytes(const Genesis& genesis);

  /// `frame` is an effect; it is copied.
  void add(std::uint32_t shard, std::span<const std::byte> frame);
  /// Puts what was added into the order of handling.
  void sort();
  [[nodiscard]] std::span<const Entry> entries() const { return entries_; }
  /// Forgets all mail, keeps the memory for the next round.
  void clear();

 private:
  Region memory_;
  TickArena frames_;
  std::vector<Entry> entries_;
};

/// The payload of an effect that lies in memory.
[[nodiscard]] inline std::span<const std::byte> effect_payload(const EffectHeader& effect) {
  return {reinterpret_cast<const std::byte*>(&effect + 1), effect.length};
}

}  // namespace lockstep
