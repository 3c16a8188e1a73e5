// SPDX-License-Identifier: Apache-2.0
#pragma once

/// ShardMemory: the arenas of one shard, carved in order of creation from one reserved range of address space, each at
/// its declared capacity and committed on touch; and the hash tree over them.
///
///     images:  | arena 0 | arena 1 | ...            one range; whole pages
///     tables:  page marks and page digests of arena 0, of arena 1, ...; handles; arena marks; arena digests
///
/// Both ranges start where `colour` says within the first page: images of equal layout that began at the same place of
/// their pages would compete for the same few sets of the caches. The pages of an image are counted from its own start.
///
/// digest() looks only at marked pages of marked arenas. A page is hashed over its bytes below the high-water mark, so
/// a page of zeroes hashes the same whether it was never touched or was freed.
///
/// A shortage of the host comes as an Error here, or as a signal at first touch; never as a trap. How much the
/// arenas of a shard may declare together is a logical limit that the executor keeps.
///
/// Belongs to one executor; one thread.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>

#include "base/digest.hpp"
#include "base/error.hpp"
#include "lockstep/arena.hpp"
#include "runtime/memory/hash_tree.hpp"
#include "runtime/memory/region.hpp"

namespace lockstep {

class ShardMemory {
 public:
  /// Room for arenas of `image_bytes` of capacity together. `barrier` is the executor's. Of the shards that one thread
  /// works on each should have a `colour` of its own; there are as many as a page has cache lines.
  [[nodiscard]] static Result<std::unique_ptr<ShardMemory>> make(std::uint64_t image_bytes, WriteBarrier& barrier,
                                                                 std::uint32_t colour = 0);
  /// Address space that make() takes.
  [[nodiscard]] static std::uint64_t reserved_bytes(std::uint64_t image_bytes);
  ShardMemory(const ShardMemory&) = delete;
  ShardMemory& operator=(const ShardMemory&) = delete;

  /// An empty arena of this capacity (as Arena wants it); its index is the number of those before it.
  [[nodiscard]] Result<std::uint32_t> create_arena(std::uint64_t capacity_bytes);
  /// Puts the bytes of an image where it belongs.
  using Fill = std::function<Result<void>(std::span<std::byte> image)>;
  /// An arena that goes on from an image of `image_bytes`: refused when `fill` fails or what it put there is no image
  /// of this capacity.
  [[nodiscard]] Result<std::uint32_t> restore_arena(std::uint64_t capacity_bytes, std::uint64_t image_bytes,
                                                    const Fill& fill);
  /// As restore_arena, into an arena that there is. What is derived from the old image is to be made anew; after an
  /// Error the memory is of no use.
  [[nodiscard]] Result<void> replace_image(std::uint32_t index, std::uint64_t image_bytes, const Fill& fill);
  /// Takes back the last create_arena(), without a trace: after the step in which it was created was undone.
  void undo_create();

  [[nodiscard]] std::uint32_t arena_count() const { return arena_count_; }
  /// Stays where it is.
  [[nodiscard]] Arena& arena(std::uint32_t index) { return slots_[index].arena; }
  /// Sum of the arenas' capacities.
  [[nodiscard]] std::uint64_t declared_bytes() const { return image_bytes_used_; }

  /// The root over all arenas, brought up to date. Between steps only.
  [[nodiscard]] Digest digest();
  /// As of the last digest(): the tree whose leaves are the arenas, and those whose leaves are an arena's pages.
  [[nodiscard]] const HashTree& arena_tree() const { return arena_tree_; }
  [[nodiscard]] const HashTree& page_tree(std::uint32_t index) const { return slots_[index].pages; }

 private:
  struct Slot {
    Arena arena;
    HashTree pages;
    std::span<std::uint64_t> page_marks;
  };
  struct Layout;

  ShardMemory(Region images, Region tables, const Layout& layout, WriteBarrier& barrier);

  [[nodiscard]] Result<void> fill_image(std::byte* at, std::uint64_t capacity_bytes, std::uint64_t image_bytes,
                                        const Fill& fill) const;
  [[nodiscard]] Slot& make_slot(std::uint64_t capacity_bytes);
  [[nodiscard]] Result<void> check_room(std::uint64_t capacity_bytes) const;
  static void prefetch(const Slot& slot);
  void update_pages(std::uint32_t index);

  Region image_region_;
  Region tables_;
  std::span<std::byte> images_;
  WriteBarrier& barrier_;
  std::uint64_t image_bytes_used_ = 0;
  std::uint32_t arena_count_ = 0;
  Slot* slots_;
  std::uint64_t* arena_marks_;
  std::byte* page_tables_;  // of the arenas, one behind the other
  std::uint64_t page_tables_used_ = 0;
  HashTree arena_tree_;
};

}  // namespace lockstep
