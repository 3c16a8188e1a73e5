// SPDX-License-Identifier: Apache-2.0
#include "lockstep/arena.hpp"

#include <algorithm>
#include <cstring>

namespace lockstep {

namespace {

/// Whole 16-byte units of a block of `bytes`, 0 counting as 1.
constexpr std::uint32_t units(std::uint32_t bytes) {
  return bytes == 0 ? 1 : ((bytes - 1) >> 4) + 1;
}

void copy_units(std::byte* to, const std::byte* from, std::uint32_t count) {
  if (count == 1) {  // most writes: not worth a call
    std::memcpy(to, from, 16);
  } else {
    std::memcpy(to, from, std::size_t{count} << 4);
  }
}

}  // namespace

Arena::Arena(std::byte* memory, std::uint64_t capacity_bytes, WriteBarrier& barrier, PageMarks marks)
    : base_(memory), capacity_(capacity_bytes), barrier_(&barrier), marks_(marks) {
  LOCKSTEP_ASSERT(reinterpret_cast<std::uintptr_t>(memory) % 64 == 0, "an image must start on a cache line");
  LOCKSTEP_ASSERT(
      capacity_bytes >= page_bytes && capacity_bytes % page_bytes == 0 && capacity_bytes <= std::uint64_t{1} << 36,
      "an arena's capacity is 4096 bytes to 64 GiB, in whole pages");
  if (header().layout == 0) {
    own_header().layout = ArenaHeader::current_layout;
    own_header().capacity_bytes = capacity_bytes;
    own_header().high_water_bytes = sizeof(ArenaHeader);
  }
  LOCKSTEP_ASSERT(is_image({memory, header().high_water_bytes}, capacity_bytes), "not an image of this capacity");
  mark(0, header().high_water_bytes);
}

bool Arena::is_image(std::span<const std::byte> image, std::uint64_t capacity_bytes) {
  ArenaHeader header;
  if (image.size() < sizeof header || image.size() > capacity_bytes) return false;
  std::memcpy(&header, image.data(), sizeof header);
  return header.layout == ArenaHeader::current_layout && header.capacity_bytes == capacity_bytes &&
         header.high_water_bytes == image.size() && header.high_water_bytes % 16 == 0;
}

Link Arena::allocate(std::uint32_t bytes) {
  if (!join()) barrier_->raise(TrapKind::write_budget);
  const std::uint32_t list = size_class(bytes);
  const std::uint64_t size = class_bytes(list);
  const Link link = header().free_blocks[list].is_null() ? take_fresh_block(size) : take_free_block(list, bytes);
  own_header().allocated_bytes += size;
  own_header().blocks += 1;
  return link;
}

Link Arena::take_free_block(std::uint32_t size_class, std::uint32_t bytes) {
  const Link link = header().free_blocks[size_class];
  const std::uint32_t dirty = units(bytes);
  if (!is_final() && barrier_->append({link.units, 0, dirty, WriteBarrier::Kind::pop,
                                       static_cast<std::uint16_t>(size_class)}) == nullptr) {
    barrier_->raise(TrapKind::write_budget);
  }
  mark(offset_of(link), std::uint64_t{dirty} << 4);
  mark_page(0);
  own_header().free_blocks[size_class] = next_of(link);
  next_of(link) = {};
  if (offset_of(link) < undo_limit_) barrier_->remember(at(link), std::size_t{dirty} << 4);
  return link;
}

Link Arena::take_fresh_block(std::uint64_t bytes) {
  const std::uint64_t offset = header().high_water_bytes;
  if (bytes > capacity_ - offset) barrier_->raise(TrapKind::arena_exhausted);
  mark_page(0);
  // The last page is hashed over its bytes below the high-water mark, so those change that gain or lose that role.
  if (offset % page_bytes != 0) mark_page(offset / page_bytes);
  mark_page((offset + bytes - 1) / page_bytes);
  own_header().high_water_bytes = offset + bytes;
  return {static_cast<std::uint32_t>(offset >> 4)};
}

void Arena::free(Link link, std::uint32_t bytes) noexcept {
  if (link.is_null()) return;
  if (!join()) return barrier_->note(TrapKind::write_budget);
  const std::uint32_t list = size_class(bytes);
  LOCKSTEP_ASSERT(
      offset_of(link) >= sizeof(ArenaHeader) && offset_of(link) + class_bytes(list) <= header().high_water_bytes,
      "a block was freed that is not of the current arena");
  WriteBarrier::Trailer block{link.units, 0, units(bytes), WriteBarrier::Kind::push, static_cast<std::uint16_t>(list)};
  const bool fresh = offset_of(link) >= undo_limit_;
  if (!fresh && class_bytes(list) > large_block_bytes) {
    if (!barrier_->free_later(*this, block)) barrier_->note(TrapKind::write_budget);
    return;
  }
  if (!is_final()) {
    if (!fresh) block.payload = block.dirty;
    std::byte* const old = barrier_->append(block);
    if (old == nullptr) return barrier_->note(TrapKind::write_budget);
    copy_units(old, at(link), block.payload);
  }
  push_free_block(block);
}

void Arena::push_free_block(const WriteBarrier::Trailer& block) {
  const Link link{block.at};
  const std::size_t dirty_bytes = std::size_t{block.dirty} << 4;
  mark_page(0);
  mark(offset_of(link), dirty_bytes);
  std::memset(at(link), 0, dirty_bytes);
  next_of(link) = header().free_blocks[block.size_class];
  own_header().free_blocks[block.size_class] = link;
  own_header().allocated_bytes -= class_bytes(block.size_class);
  own_header().blocks -= 1;
}

void Arena::undo_pop(const WriteBarrier::Trailer& block) {
  const Link link{block.at};
  std::memset(at(link), 0, std::size_t{block.dirty} << 4);
  next_of(link) = header().free_blocks[block.size_class];
  own_header().free_blocks[block.size_class] = link;
}

void Arena::undo_push(const WriteBarrier::Trailer& block, const std::byte* old) {
  const Link link{block.at};
  own_header().free_blocks[block.size_class] = next_of(link);
  next_of(link) = {};
  copy_units(at(link), old, block.payload);
}

void Arena::undo_growth(std::uint64_t high_water_bytes) {
  const std::uint64_t end = header().high_water_bytes;
  own_header().high_water_bytes = high_water_bytes;
  const std::uint64_t first_page = (high_water_bytes + page_bytes - 1) / page_bytes;
  std::memset(base_ + high_water_bytes, 0, std::min(end, first_page * page_bytes) - high_water_bytes);
  // Of the pages beyond, those never written are zero already: a trap must not commit what was merely reserved.
  for (std::uint64_t page = first_page; page * page_bytes < end; ++page) {
    std::uint64_t& word = marks_.pages[page / 64];
    const std::uint64_t bit = std::uint64_t{1} << (page % 64);
    if ((word & bit) == 0) continue;
    std::memset(base_ + page * page_bytes, 0, page_bytes);
    word &= ~bit;
  }
}

/// Puts the old bytes of the range into the log, which this arena has joined. False when the budget does not suffice.
inline bool Arena::keep_units(std::uint64_t offset, std::size_t bytes) {
  const std::uint64_t begin = offset >> 4;
  const std::uint64_t end = (offset + bytes + 15) >> 4;
  const auto payload = static_cast<std::uint32_t>(end - begin);
  std::byte* const old =
      barrier_->append({static_cast<std::uint32_t>(begin), payload, 0, WriteBarrier::Kind::write, 0});
  if (old == nullptr) return false;
  std::byte* const image = base_ + (begin << 4);
  copy_units(old, image, payload);
  barrier_->remember(image, std::size_t{payload} << 4);
  return true;
}

bool Arena::begin_step(void* address, std::size_t bytes) {
  LOCKSTEP_ASSERT(barrier_->arena_ == nullptr, "a step began within another step");
  const std::uint64_t offset = offset_of(address);
  if (!barrier_->enter(*this) || !keep_units(offset, bytes)) return false;
  barrier_->first_ = {reinterpret_cast<std::uintptr_t>(address), bytes};
  mark(offset, bytes);
  return true;
}

bool Arena::join() {
  return barrier_->arena_ == this || barrier_->enter(*this);
}

/// Most writes lie in one unit, and so in one page.
void Arena::keep(std::uint64_t offset, std::size_t bytes) {
  if (barrier_->arena_ != this || bytes > undo_limit_ - offset || bytes - 1 > 15 - (offset & 15U))  // 0 wraps
    return keep_rarely(offset, bytes);
  const std::uint64_t unit = offset >> 4;
  std::byte* const old = barrier_->append({static_cast<std::uint32_t>(unit), 1, 0, WriteBarrier::Kind::write, 0});
  if (old == nullptr) barrier_->raise(TrapKind::write_budget);
  std::byte* const image = base_ + (unit << 4);
  std::memcpy(old, image, 16);
  barrier_->remember(image, 16);
  mark_page(offset / page_bytes);
}

/// The step's first write to this arena, one of several units, or one that is not all inside of what undo has to
/// restore.
void Arena::keep_rarely(std::uint64_t offset, std::size_t bytes) {
  if (offset >= capacity_ || bytes == 0) return;
  if (!join()) barrier_->raise(TrapKind::write_budget);
  if (offset < undo_limit_) {
    if (!keep_units(offset, std::min(bytes, undo_limit_ - offset))) barrier_->raise(TrapKind::write_budget);
    if (barrier_->first_.size == 0) barrier_->first_ = barrier_->last_;
  }
  mark(offset, bytes);
}

}  // namespace lockstep
