// SPDX-License-Identifier: Apache-2.0
#include "runtime/agents/shard.hpp"

#include <sys/mman.h>

#include <algorithm>
#include <bit>
#include <cstring>

#include "base/assert.hpp"

namespace lockstep {
namespace {

constexpr std::size_t first_directory_slots = 64;

/// Powers of two, so that blocks of all sizes that were ever needed fit beside each other in twice the largest.
std::uint32_t mail_block_bytes(std::uint64_t mail_bytes) {
  return static_cast<std::uint32_t>(std::bit_ceil(std::max<std::uint64_t>(mail_bytes, page_bytes)));
}

std::uint64_t own_arena_bytes(const Genesis& genesis) {
  return 2 * std::uint64_t{mail_block_bytes(genesis.shard_mail_bytes)} + page_bytes;
}

std::byte* reserve(std::uint64_t bytes) {
  void* const memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  LOCKSTEP_ASSERT(memory != MAP_FAILED, "no address space for a shard");
  return static_cast<std::byte*>(memory);
}

}  // namespace

Shard::Image::Image(std::byte* memory, std::uint64_t capacity, WriteBarrier& barrier)
    : page_marks((capacity / page_bytes + 63) / 64),
      arena(memory, capacity, barrier, {page_marks.data(), &arena_mark, 1}) {}

Shard::Shard(std::uint32_t number, const Genesis& genesis, WriteBarrier& barrier)
    : number_(number),
      genesis_(genesis),
      barrier_(barrier),
      memory_(reserve(own_arena_bytes(genesis) + genesis.shard_memory_bytes)),
      directory_(first_directory_slots) {
  memory_used_ = 0;
  images_.emplace_back(memory_, own_arena_bytes(genesis), barrier);
  memory_used_ = own_arena_bytes(genesis);
  static_cast<void>(images_[0].arena.allocate(sizeof(MailHeader)));
  barrier_.commit();
}

Shard::~Shard() {
  munmap(memory_, own_arena_bytes(genesis_) + genesis_.shard_memory_bytes);
}

Actor* Shard::find(const Address& address, std::uint64_t hash) const {
  const std::size_t mask = directory_.size() - 1;
  for (std::size_t at = hash >> 32U & mask; directory_[at].actor != nullptr; at = (at + 1) & mask) {
    if (directory_[at].hash == hash && directory_[at].actor->address == address) return directory_[at].actor;
  }
  return nullptr;
}

Actor* Shard::create(const Address& address, std::uint64_t hash, const ActorType& type) {
  if (type.arena_bytes > own_arena_bytes(genesis_) + genesis_.shard_memory_bytes - memory_used_) return nullptr;
  Arena& arena = images_.emplace_back(memory_ + memory_used_, type.arena_bytes, barrier_).arena;
  memory_used_ += type.arena_bytes;
  if (2 * (actors_.size() + 1) > directory_.size()) grow();
  Actor& actor = actors_.emplace_back(Actor{address, &type, &arena, nullptr, nullptr});
  insert({hash, &actor});
  return &actor;
}

void Shard::undo_create(std::uint64_t hash) {
  Actor* const last = &actors_.back();
  const std::size_t mask = directory_.size() - 1;
  std::size_t at = hash >> 32U & mask;
  while (directory_[at].actor != last) at = (at + 1) & mask;
  directory_[at] = {};
  Arena& arena = *last->arena;
  std::memset(memory_ + memory_used_ - arena.capacity_bytes(), 0, arena.image().size());
  memory_used_ -= arena.capacity_bytes();
  actors_.pop_back();
  images_.pop_back();
}

EffectBudget& Shard::budget(std::uint64_t batch) {
  if (budget_batch_ != batch) {
    budget_batch_ = batch;
    budget_ = {genesis_.shard_effects, genesis_.shard_effect_bytes};
  }
  return budget_;
}

Shard::MailHeader& Shard::mail() const {
  return *reinterpret_cast<MailHeader*>(memory_ + sizeof(ArenaHeader));
}

void Shard::carry(std::span<const Mailbox::Entry> entries) {
  std::uint64_t bytes = 0;
  for (const Mailbox::Entry& entry : entries) bytes += effect_bytes(entry.effect->length);
  if (bytes == 0) return;
  Arena& arena = images_[0].arena;
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
  return {images_[0].arena.at(mail().frames), mail().bytes};
}

void Shard::drop_carried() {
  Arena& arena = images_[0].arena;
  arena.free(mail().frames, mail_block_bytes(mail().bytes));
  arena.before_write(&mail(), sizeof(MailHeader));
  mail() = {};
  barrier_.commit();
}

Digest Shard::state_digest() {
  Digest digest;
  for (std::size_t i = 0; i < images_.size(); ++i) {
    Image& image = images_[i];
    if (image.arena_mark != 0) {
      image.digest = xxh3_128(image.arena.image());
      image.arena_mark = 0;
      std::ranges::fill(image.page_marks, 0);
    }
    const Digest pair[2] = {digest, image.digest};
    digest = xxh3_128(std::as_bytes(std::span(pair)));
  }
  return digest;
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
