// SPDX-License-Identifier: Apache-2.0
#include "runtime/agents/shard.hpp"

#include <algorithm>
#include <bit>
#include <cstring>

#include "runtime/agents/host.hpp"

namespace lockstep {
namespace {

constexpr std::size_t first_directory_slots = 64;

/// Powers of two, so that blocks of all sizes that were ever needed fit beside each other in twice the largest.
std::uint32_t mail_block_bytes(std::uint64_t mail_bytes) {
  return static_cast<std::uint32_t>(std::bit_ceil(std::max<std::uint64_t>(mail_bytes, page_bytes)));
}

std::uint64_t mail_arena_bytes(const Genesis& genesis) {
  return 2 * std::uint64_t{mail_block_bytes(genesis.shard_mail_bytes)} + page_bytes;
}

/// Of the shard's own arenas.
std::uint64_t own_bytes(const Genesis& genesis) {
  return mail_arena_bytes(genesis) + genesis.shard_session_bytes;
}

}  // namespace

Shard::Shard(std::uint32_t number, const Genesis& genesis, WriteBarrier& barrier)
    : number_(number),
      genesis_(genesis),
      barrier_(barrier),
      memory_(or_stop(ShardMemory::make(own_bytes(genesis) + genesis.shard_memory_bytes, barrier, number))),
      directory_(first_directory_slots) {
  static_cast<void>(or_stop(memory_->create_arena(mail_arena_bytes(genesis))));
  static_cast<void>(own_arena().allocate(sizeof(MailHeader)));
  barrier_.commit();
  static_cast<void>(or_stop(memory_->create_arena(genesis.shard_session_bytes)));
  sessions_.emplace(memory_->arena(session_arena));
}

std::uint64_t Shard::reserved_bytes(const Genesis& genesis) {
  return ShardMemory::reserved_bytes(own_bytes(genesis) + genesis.shard_memory_bytes);
}

Actor* Shard::create(const Address& address, std::uint64_t hash, const ActorType& type) {
  const std::uint64_t actors_bytes = memory_->declared_bytes() - own_bytes(genesis_);
  if (type.arena_bytes > genesis_.shard_memory_bytes - actors_bytes) return nullptr;
  Arena& arena = memory_->arena(or_stop(memory_->create_arena(type.arena_bytes)));
  if (2 * (actors_.size() + 1) > directory_.size()) grow();
  Actor& actor = actors_.emplace_back(Actor{address, &type, &arena, nullptr, nullptr});
  insert({hash, &actor});
  return &actor;
}

Result<void> Shard::restore_own(std::uint32_t index, std::uint64_t image_bytes, const ShardMemory::Fill& fill) {
  if (auto replaced = memory_->replace_image(index, image_bytes, fill); !replaced) return replaced;
  if (index == session_arena) sessions_.emplace(memory_->arena(session_arena));
  return {};
}

Result<Actor*> Shard::restore_actor(const Address& address, const ActorType& type, std::uint64_t image_bytes,
                                    const ShardMemory::Fill& fill) {
  const auto index = memory_->restore_arena(type.arena_bytes, image_bytes, fill);
  if (!index) return std::unexpected(index.error());
  Arena& arena = memory_->arena(*index);
  auto* const header = reinterpret_cast<ActorHeader*>(arena.at(Arena::first_block));
  if (image_bytes < sizeof(ArenaHeader) + sizeof(ActorHeader) + type.root_bytes || header->self != address ||
      find(address, address_hash(address)) != nullptr)
    return fail(ErrorCode::corrupt, "an image of a snapshot is not that of its actor");
  if (2 * (actors_.size() + 1) > directory_.size()) grow();
  Actor& actor = actors_.emplace_back(Actor{address, &type, &arena, header, reinterpret_cast<std::byte*>(header + 1)});
  insert({address_hash(address), &actor});
  return &actor;
}

void Shard::undo_create(std::uint64_t hash) {
  const std::size_t mask = directory_.size() - 1;
  std::size_t at = hash >> 32U & mask;
  while (directory_[at].actor != &actors_.back()) at = (at + 1) & mask;
  directory_[at] = {};
  actors_.pop_back();
  memory_->undo_create();
}

Shard::MailHeader& Shard::mail() const {
  return *reinterpret_cast<MailHeader*>(own_arena().at(Arena::first_block));
}

void Shard::carry(std::span<const Mailbox::Entry> entries) {
  std::uint64_t bytes = 0;
  for (const Mailbox::Entry& entry : entries) bytes += effect_bytes(entry.effect->length);
  if (bytes == 0) return;
  Arena& arena = own_arena();
  const Link frames = arena.allocate(mail_block_bytes(bytes));
  std::byte* to = arena.at(frames);
  arena.before_write(to, bytes);
  for (const Mailbox::Entry& entry : entries) {
    std::memcpy(to, entry.effect, effect_bytes(entry.effect->length));
    to += effect_bytes(entry.effect->length);
  }
  arena.before_write(&mail(), sizeof(MailHeader));
  mail() = {frames, 0, bytes};
  barrier_.commit();
}

std::span<const std::byte> Shard::carried() const {
  if (mail().bytes == 0) return {};
  return {own_arena().at(mail().frames), mail().bytes};
}

void Shard::drop_carried() {
  Arena& arena = own_arena();
  arena.free(mail().frames, mail_block_bytes(mail().bytes));
  arena.before_write(&mail(), sizeof(MailHeader));
  mail() = {};
  barrier_.commit();
}

void Shard::insert(const Slot& slot) {
  const std::size_t mask = directory_.size() - 1;
  std::size_t at = slot.hash >> 32U & mask;
  while (directory_[at].actor != nullptr) at = (at + 1) & mask;
  directory_[at] = slot;
}

void Shard::grow() {
  std::vector<Slot> old(2 * directory_.size());
  old.swap(directory_);
  for (const Slot& slot : old) {
    if (slot.actor != nullptr) insert(slot);
  }
}

}  // namespace lockstep
