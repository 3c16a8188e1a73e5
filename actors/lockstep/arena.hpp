// SPDX-License-Identifier: Apache-2.0
#pragma once

/// Arena: the one place an actor's state lies: a contiguous image that is the same bytes at every address, in every
/// process, with every compiler. Links are counted from the image's start in 16-byte units, never addresses. Memory is
/// zeroed when allocated and when freed, and free lists live in the image, so its bytes are a function of the actor's
/// history alone.
///
/// Every write to the image is announced by before_write(), the write barrier: it keeps the old bytes, so that a
/// trapped handler can be undone, and marks the 4 KiB pages, for hashing and snapshots. Containers call it; users do
/// not.
///
/// The object itself is a handle: where the image lies in this process. Belongs to the executor that owns the actor's
/// shard. Limits: 4096 bytes to 64 GiB of capacity, in whole pages; 4 GiB a block.

#include <cstddef>
#include <cstdint>
#include <span>

#include "base/assert.hpp"
#include "lockstep/size_class.hpp"
#include "lockstep/write_barrier.hpp"

namespace lockstep {

inline constexpr std::size_t page_bytes = 4096;

/// A place in an arena: 16-byte units from the image's start; 0 is null (the image's own header is there).
struct Link {
  std::uint32_t units = 0;
  friend bool operator==(const Link&, const Link&) = default;
  [[nodiscard]] bool is_null() const { return units == 0; }
};

/// The first 512 bytes of an image; the first block allocated (the actor's root object) follows.
///
///       0  layout | zero | capacity_bytes         what the image is
///      16  high_water_bytes | allocated_bytes     beyond the high-water mark all is zero
///      32  blocks | zero
///      64  free_blocks[112]                       one list a size class: the link of its first block; a free block
///                                                 holds the link of the next in its first 4 bytes, else zeroes
struct ArenaHeader {
  std::uint32_t layout;  ///< ArenaHeader::current_layout
  std::uint32_t zero;
  std::uint64_t capacity_bytes;    ///< as declared; a multiple of 4096
  std::uint64_t high_water_bytes;  ///< never shrinks, except by undo
  std::uint64_t allocated_bytes;   ///< of blocks in use, rounded up to their classes
  std::uint64_t blocks;            ///< in use
  std::uint64_t zeros[3];
  Link free_blocks[size_class_count];

  static constexpr std::uint32_t current_layout = 1;
};
static_assert(sizeof(ArenaHeader) == 512 && offsetof(ArenaHeader, capacity_bytes) == 8);
static_assert(offsetof(ArenaHeader, high_water_bytes) == 16 && offsetof(ArenaHeader, allocated_bytes) == 24);
static_assert(offsetof(ArenaHeader, blocks) == 32 && offsetof(ArenaHeader, free_blocks) == 64);

/// Which pages changed since somebody last looked: a bit a page, and a bit an arena so that a shard can find those that
/// changed. Cleared by the reader of the marks.
struct PageMarks {
  std::uint64_t* pages;  ///< capacity / 4096 bits, rounded up to words
  std::uint64_t* arenas;
  std::uint64_t arena_bit;  ///< set in *arenas with the first page
};

class Arena {
 public:
  /// A handle on `memory`: either zeroes, which become an empty image of `capacity_bytes`, or the image of an arena of
  /// that capacity, whose pages are then all marked. Memory must be aligned to 64 and be zero beyond the image.
  Arena(std::byte* memory, std::uint64_t capacity_bytes, WriteBarrier& barrier, PageMarks marks);

  /// Whether `image` could be that of an arena of this capacity: what to ask of bytes from outside the process.
  [[nodiscard]] static bool is_image(std::span<const std::byte> image, std::uint64_t capacity_bytes);

  /// The arena of the handler that this thread is running; containers find their memory through it.
  [[nodiscard]] static Arena& current() {
    LOCKSTEP_ASSERT(current_ != nullptr, "a container of the SDK was used outside of a handler");
    return *current_;
  }
  /// Sets what current() gives on this thread, null for none; returns what it gave before.
  static Arena* set_current(Arena* arena) {
    Arena* const before = current_;
    current_ = arena;
    return before;
  }

  /// Zeroed memory of at least `bytes`, aligned to 16. Throws TrapError{arena_exhausted} at the declared capacity.
  [[nodiscard]] Link allocate(std::uint32_t bytes);
  /// Gives memory back and zeroes it. `bytes` is what allocate() was asked for. A block above 4096 bytes that is older
  /// than the step becomes free at the step's end: so undo need not keep its bytes. Never throws, see
  /// WriteBarrier::raised(). A null link is ignored.
  void free(Link link, std::uint32_t bytes) noexcept;

  [[nodiscard]] std::byte* at(Link link) { return base_ + offset_of(link); }
  [[nodiscard]] const std::byte* at(Link link) const { return base_ + offset_of(link); }
  /// The link of an address inside the image that is a multiple of 16 from its start.
  [[nodiscard]] Link link_to(const void* address) const { return link_at(offset_of(address)); }
  [[nodiscard]] bool contains(const void* address) const { return offset_of(address) < capacity_; }

  /// Must precede each write to [address, address + bytes). Outside the image (a container on the stack) it does
  /// nothing. Throws TrapError{write_budget}; so a destructor may free() but not write.
  void before_write(void* address, std::size_t bytes) {
    const std::uint64_t offset = offset_of(address);
    if (offset >= undo_limit_) {  // younger than the step: undo zeroes it as a whole; or not of this image
      if (offset < capacity_) mark(offset, bytes);
      return;
    }
    if (!barrier_->keeps(address, bytes)) keep(offset, bytes);
  }

  /// Begins a step of the barrier in this arena with what every handler may write, [address, address + bytes), which
  /// was allocated before: before_write() of it, in one go. False when the budget does not suffice.
  [[nodiscard]] bool begin_step(void* address, std::size_t bytes);

  /// The image's bytes up to its high-water mark: what is hashed, snapshotted and compared.
  [[nodiscard]] std::span<const std::byte> image() const { return {base_, header().high_water_bytes}; }
  [[nodiscard]] const ArenaHeader& header() const { return *reinterpret_cast<const ArenaHeader*>(base_); }
  [[nodiscard]] std::uint64_t capacity_bytes() const { return capacity_; }
  /// Where the first block of every image lies: the actor's root object.
  static constexpr Link first_block{sizeof(ArenaHeader) / 16};

 private:
  friend class WriteBarrier;
  friend class FinalStep;

  static constexpr std::uint64_t not_joined = UINT64_MAX;
  static constexpr std::uint64_t large_block_bytes = 4096;

  [[nodiscard]] std::uint64_t offset_of(const void* address) const {
    return reinterpret_cast<std::uintptr_t>(address) - reinterpret_cast<std::uintptr_t>(base_);
  }
  [[nodiscard]] static std::uint64_t offset_of(Link link) { return std::uint64_t{link.units} << 4; }
  [[nodiscard]] static Link link_at(std::uint64_t offset) { return {static_cast<std::uint32_t>(offset >> 4)}; }
  [[nodiscard]] ArenaHeader& own_header() { return *reinterpret_cast<ArenaHeader*>(base_); }
  [[nodiscard]] Link& next_of(Link block) { return *reinterpret_cast<Link*>(at(block)); }

  void mark_page(std::uint64_t page) {
    std::uint64_t& word = marks_.pages[page >> 6];
    const std::uint64_t bit = std::uint64_t{1} << (page & 63);
    if ((word & bit) != 0) return;
    word |= bit;
    *marks_.arenas |= marks_.arena_bit;
    if (barrier_->observer_ != nullptr) [[unlikely]]
      barrier_->observer_->before_change(base_, base_ + page * page_bytes);
  }
  void mark(std::uint64_t offset, std::uint64_t bytes) {
    const std::uint64_t end = (offset + bytes + page_bytes - 1) / page_bytes;
    for (std::uint64_t page = offset / page_bytes; page < end; ++page) mark_page(page);
  }

  void keep(std::uint64_t offset, std::size_t bytes);
  void keep_rarely(std::uint64_t offset, std::size_t bytes);
  [[nodiscard]] bool keep_units(std::uint64_t offset, std::size_t bytes);
  [[nodiscard]] bool join();
  [[nodiscard]] bool is_final() const { return undo_limit_ == 0; }
  Link take_free_block(std::uint32_t size_class, std::uint32_t bytes);
  Link take_fresh_block(std::uint64_t bytes);
  void push_free_block(const WriteBarrier::Trailer& block);
  void undo_pop(const WriteBarrier::Trailer& block);
  void undo_push(const WriteBarrier::Trailer& block, const std::byte* old);
  void undo_growth(std::uint64_t high_water_bytes);

  inline static constinit thread_local Arena* current_ = nullptr;

  std::byte* base_;
  std::uint64_t capacity_;
  std::uint64_t undo_limit_ = not_joined;  // the high-water mark when the arena joined the step; 0 in a final step
  WriteBarrier* barrier_;
  PageMarks marks_;
};

inline bool WriteBarrier::enter(Arena& arena) {
  constexpr std::uint32_t units = (sizeof(Enter) + 15) / 16;
  std::byte* const payload = append({.at = 0, .payload = units, .dirty = 0, .kind = Kind::enter, .size_class = 0});
  if (payload == nullptr) return false;
  const ArenaHeader& header = arena.header();
  last_enter_ =
      new (payload) Enter{arena_, last_enter_, header.high_water_bytes, header.allocated_bytes, header.blocks};
  arena_ = &arena;
  if (arena.undo_limit_ == Arena::not_joined) arena.undo_limit_ = header.high_water_bytes;
  return true;
}

/// Makes an arena the current one for a scope.
class CurrentArena {
 public:
  explicit CurrentArena(Arena& arena) : before_(Arena::set_current(&arena)) {}
  ~CurrentArena() { Arena::set_current(before_); }
  CurrentArena(const CurrentArena&) = delete;
  CurrentArena& operator=(const CurrentArena&) = delete;

 private:
  Arena* before_;
};

/// A step of the executor's own, between handlers: it is never undone. While this lives, writes to the arena mark pages
/// as ever, but nothing is kept of what they overwrite, so no budget bounds them. Makes the arena the current one.
class FinalStep {
 public:
  explicit FinalStep(Arena& arena) : arena_(arena), current_(arena) {
    LOCKSTEP_ASSERT(arena.barrier_->arena_ == nullptr, "a final step began within another step");
    arena.barrier_->arena_ = &arena;
    arena.undo_limit_ = 0;
  }
  ~FinalStep() {
    arena_.barrier_->arena_ = nullptr;
    arena_.undo_limit_ = Arena::not_joined;
  }
  FinalStep(const FinalStep&) = delete;
  FinalStep& operator=(const FinalStep&) = delete;

 private:
  Arena& arena_;
  CurrentArena current_;
};

}  // namespace lockstep
