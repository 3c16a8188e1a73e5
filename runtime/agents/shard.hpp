// SPDX-License-Identifier: Apache-2.0
#pragma once

/// Shard: a set of actors whose order of messages is one (docs/determinism.md, "Order"), with what is kept once a
/// shard: the directory of its actors, the effects hash, the budget of the batch, its part of the sessions, and the
/// mail it carries into the next batch. Mail and sessions lie in arenas of the shard's own, hashed like an actor's.
///
/// Belongs to one executor; one thread. A shortage of the host (address space, memory) ends the process with a line
/// that says so: it is never a trap.

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "base/digest.hpp"
#include "lockstep/actor_header.hpp"
#include "lockstep/actor_type.hpp"
#include "lockstep/arena.hpp"
#include "lockstep/effects.hpp"
#include "runtime/agents/genesis.hpp"
#include "runtime/agents/mail.hpp"
#include "runtime/agents/session_table.hpp"
#include "runtime/memory/shard_memory.hpp"

namespace lockstep {

/// An actor as its executor sees it: where its image and the parts of it lie in this process. Stays where it is.
struct Actor {
  Address address;
  const ActorType* type = nullptr;
  Arena* arena = nullptr;
  ActorHeader* header = nullptr;
  std::byte* root = nullptr;
};

class Shard {
 public:
  /// `barrier` is the executor's.
  Shard(std::uint32_t number, const Genesis& genesis, WriteBarrier& barrier);
  /// Address space that each takes.
  [[nodiscard]] static std::uint64_t reserved_bytes(const Genesis& genesis);
  Shard(const Shard&) = delete;
  Shard& operator=(const Shard&) = delete;

  [[nodiscard]] std::uint32_t number() const { return number_; }

  /// Null when there is no such actor. `hash` is address_hash(address).
  [[nodiscard]] Actor* find(const Address& address, std::uint64_t hash) const {
    const std::size_t mask = directory_.size() - 1;
    for (std::size_t at = hash >> 32U & mask; directory_[at].actor != nullptr; at = (at + 1) & mask) {
      if (directory_[at].hash == hash && directory_[at].actor->address == address) return directory_[at].actor;
    }
    return nullptr;
  }
  /// A new actor with an empty arena; null when the shard's memory, as genesis counts it, does not suffice.
  [[nodiscard]] Actor* create(const Address& address, std::uint64_t hash, const ActorType& type);
  /// Takes back the last create().
  void undo_create(std::uint64_t hash);

  /// What is left of the shard's budget in batch `batch`.
  [[nodiscard]] EffectBudget& budget(std::uint64_t batch) {
    if (budget_batch_ != batch) {
      budget_batch_ = batch;
      budget_ = {genesis_.shard_effects, genesis_.shard_effect_bytes};
    }
    return budget_;
  }

  /// Running hash over the shard's effects.
  Digest effects;

  /// Keeps `mail` (entries of this shard, in order) for the next batch. It must fit shard_mail_bytes.
  void carry(std::span<const Mailbox::Entry> mail);
  /// The frames of the carried mail, one behind the other.
  [[nodiscard]] std::span<const std::byte> carried() const;
  void drop_carried();

  [[nodiscard]] SessionTable& sessions() { return *sessions_; }

  /// How many of its arenas, the first ones, are the shard's own; the others are those of its actors, in the order in
  /// which they were created.
  static constexpr std::uint32_t own_arenas = 2;
  [[nodiscard]] ShardMemory& memory() { return *memory_; }
  /// Of a new shard: own arena `index` goes on from an image. After an Error the shard is of no use, here and below.
  [[nodiscard]] Result<void> restore_own(std::uint32_t index, std::uint64_t image_bytes, const ShardMemory::Fill& fill);
  /// An actor that goes on from an image, created behind those there are.
  [[nodiscard]] Result<Actor*> restore_actor(const Address& address, const ActorType& type, std::uint64_t image_bytes,
                                             const ShardMemory::Fill& fill);

  /// Digest of all that the shard holds. Between steps only.
  [[nodiscard]] Digest state_digest() { return memory_->digest(); }

 private:
  struct MailHeader {  // root of the shard's own arena
    Link frames;
    std::uint32_t zero = 0;
    std::uint64_t bytes = 0;
  };
  struct Slot {
    std::uint64_t hash = 0;
    Actor* actor = nullptr;
  };

  /// The shard's own arenas come before those of actors_[0], actors_[1], ...
  static constexpr std::uint32_t mail_arena = 0;
  static constexpr std::uint32_t session_arena = 1;

  [[nodiscard]] Arena& own_arena() const { return memory_->arena(mail_arena); }
  [[nodiscard]] MailHeader& mail() const;
  void insert(const Slot& slot);
  void grow();

  std::uint32_t number_;
  Genesis genesis_;
  WriteBarrier& barrier_;
  EffectBudget budget_;
  std::uint64_t budget_batch_ = 0;

  std::unique_ptr<ShardMemory> memory_;
  std::optional<SessionTable> sessions_;
  std::deque<Actor> actors_;
  std::vector<Slot> directory_;  // open addressing, a power of two
};

}  // namespace lockstep
