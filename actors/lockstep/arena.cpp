// SPDX-License-Identifier: Apache-2.0
#include "lockstep/arena.hpp"

#include <algorithm>
#include <cstring>

namespace lockstep {

Arena::Arena(std::byte* memory, std::uint64_t capacity_bytes, WriteBarrier& barrier, PageMarks marks)
    : base_(memory), capacity_(capacity_bytes), barrier_(&barrier), marks_(marks) {
  LOCKSTEP_ASSERT(reinterpret_cast<std::uintptr_t>(memory) % page_bytes == 0, "an image must start on a page");
  LOCKSTEP_ASSERT(
      capacity_bytes >= page_bytes && capacity_bytes % page_bytes == 0 && capacity_bytes <= std::uint64_t{1} << 36,
      "an arena's capacity is 4096 bytes to 64 GiB, in whole pages");
  if (header().layout == 0) {
    header().layout = ArenaHeader::current_layout;
    header().capacity_bytes = capacity_bytes;
    header().high_water_bytes = sizeof(ArenaHeader);
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
  const Link link = header().free_blocks[list].is_null() ? take_fresh_block(size) : take_free_block(list);
  header().allocated_bytes += size;
  header().blocks += 1;
  return link;
}

Link Arena::take_free_block(std::uint32_t size_class) {
  const Link link = header().free_blocks[size_class];
  const std::uint64_t offset = offset_of(link);
  if (barrier_->append(WriteBarrier::Kind::pop, offset, 0, size_class) == nullptr) {
    barrier_->raise(TrapKind::write_budget);
  }
  mark_page(0);
  mark_page(offset / page_bytes);
  header().free_blocks[size_class] = next_of(link);
  next_of(link) = {};
  return link;
}

Link Arena::take_fresh_block(std::uint64_t bytes) {
  const std::uint64_t offset = header().high_water_bytes;
  if (bytes > capacity_ - offset) barrier_->raise(TrapKind::arena_exhausted);
  mark_page(0);
  // The last page is hashed over its bytes below the high-water mark, so those change that gain or lose that role.
  if (offset % page_bytes != 0) mark_page(offset / page_bytes);
  mark_page((offset + bytes - 1) / page_bytes);
  header().high_water_bytes = offset + bytes;
  return {static_cast<std::uint32_t>(offset >> 4)};
}

void Arena::free(Link link, std::uint32_t bytes) noexcept {
  if (link.is_null()) return;
  if (!join()) return barrier_->note(TrapKind::write_budget);
  const std::uint64_t offset = offset_of(link);
  const std::uint32_t list = size_class(bytes);
  const std::uint64_t size = class_bytes(list);
  const std::uint64_t dirty_bytes = (std::max<std::uint64_t>(bytes, 1) + 15) / 16 * 16;  // what may have been written
  LOCKSTEP_ASSERT(offset >= sizeof(ArenaHeader) && offset + size <= header().high_water_bytes,
                  "a block was freed that is not of the current arena");
  const bool fresh = offset >= undo_limit_;
  if (!fresh && size > large_block_bytes) {
    if (!barrier_->free_later(*this, offset, dirty_bytes, list)) barrier_->note(TrapKind::write_budget);
    return;
  }
  std::byte* const old = barrier_->append(WriteBarrier::Kind::push, offset, fresh ? 0 : dirty_bytes, list);
  if (old == nullptr) return barrier_->note(TrapKind::write_budget);
  if (!fresh) std::memcpy(old, at(link), dirty_bytes);
  push_free_block(link, list, dirty_bytes);
}

void Arena::push_free_block(Link link, std::uint32_t size_class, std::uint64_t dirty_bytes) {
  mark_page(0);
  mark(offset_of(link), dirty_bytes);
  std::memset(at(link), 0, dirty_bytes);
  next_of(link) = header().free_blocks[size_class];
  header().free_blocks[size_class] = link;
  header().allocated_bytes -= class_bytes(size_class);
  header().blocks -= 1;
}

void Arena::undo_pop(std::uint64_t offset, std::uint32_t size_class) {
  const Link link = link_at(offset);
  std::memset(at(link), 0, class_bytes(size_class));
  next_of(link) = header().free_blocks[size_class];
  header().free_blocks[size_class] = link;
}

void Arena::undo_push(std::uint64_t offset, std::uint32_t size_class, std::span<const std::byte> old) {
  const Link link = link_at(offset);
  header().free_blocks[size_class] = next_of(link);
  next_of(link) = {};
  if (!old.empty()) std::memcpy(at(link), old.data(), old.size());
}

void Arena::undo_growth(std::uint64_t high_water_bytes) {
  const std::uint64_t end = header().high_water_bytes;
  header().high_water_bytes = high_water_bytes;
  const std::uint64_t whole = std::min(end, (high_water_bytes + page_bytes - 1) / page_bytes * page_bytes);
  std::memset(base_ + high_water_bytes, 0, whole - high_water_bytes);
  // Of the pages beyond, those never written are zero already: a trap must not commit what was merely reserved.
  for (std::uint64_t page = (high_water_bytes + page_bytes - 1) / page_bytes;
       page < (end + page_bytes - 1) / page_bytes; ++page) {
    std::uint64_t& word = marks_.pages[page / 64];
    const std::uint64_t bit = std::uint64_t{1} << (page % 64);
    if ((word & bit) == 0) continue;
    std::memset(base_ + page * page_bytes, 0, page_bytes);
    word &= ~bit;
  }
}

bool Arena::join() {
  return barrier_->arena_ == this || barrier_->enter(*this);
}

void Arena::keep(std::uint64_t offset, std::size_t bytes) {
  if (offset >= capacity_) return;
  if (!join()) barrier_->raise(TrapKind::write_budget);
  mark(offset, bytes);
  if (offset >= undo_limit_) return;
  bytes = std::min(bytes, undo_limit_ - offset);
  std::byte* const old = barrier_->append(WriteBarrier::Kind::write, offset, bytes, 0);
  if (old == nullptr) barrier_->raise(TrapKind::write_budget);
  std::memcpy(old, base_ + offset, bytes);
  barrier_->remember(base_ + offset, bytes);
}

}  // namespace lockstep
