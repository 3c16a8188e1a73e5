// SPDX-License-Identifier: Apache-2.0
#include "runtime/memory/shard_memory.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <new>

#include "base/assert.hpp"

namespace lockstep {
namespace {

constexpr std::uint64_t words_for(std::uint64_t bits) {
  return (bits + 63) / 64;
}

constexpr std::uint64_t round_up(std::uint64_t bytes) {
  return (bytes + page_bytes - 1) / page_bytes * page_bytes;
}

/// What an arena of so many pages takes of the tables: marks, then digests, kept aligned to 16.
std::uint64_t page_table_bytes(std::uint64_t pages) {
  return (words_for(pages) * 8 + 15) / 16 * 16 + HashTree::storage_digests(pages) * sizeof(Digest);
}

constexpr std::size_t prefetched_bytes = 1024;
constexpr std::size_t cache_line_bytes = 64;

/// The digest of a whole page of zeroes: what pages are that were never written.
Digest zero_page_digest() {
  static const Digest digest = [] {
    constexpr std::byte zeroes[page_bytes] = {};
    return xxh3_128(zeroes);
  }();
  return digest;
}

}  // namespace

/// Offsets into the two regions.
struct ShardMemory::Layout {
  std::uint64_t images;
  std::uint64_t image_end;
  std::uint64_t max_arenas;
  std::uint64_t slots;
  std::uint64_t arena_marks;
  std::uint64_t arena_digests;
  std::uint64_t page_tables;
  std::uint64_t end;

  Layout(std::uint64_t image_bytes, std::uint32_t colour)
      : images(std::uint64_t{colour} * cache_line_bytes % page_bytes),
        image_end(images + image_bytes),
        max_arenas(std::min(image_bytes / page_bytes, std::uint64_t{1} << 32)),
        slots(images) {
    arena_marks = slots + round_up(max_arenas * sizeof(Slot));
    arena_digests = arena_marks + round_up(words_for(max_arenas) * 8);
    page_tables = arena_digests + round_up(HashTree::storage_digests(max_arenas) * sizeof(Digest));
    // The most that arenas of one page each can take; fewer, larger ones take less a page.
    end = page_tables + round_up(image_bytes / page_bytes * page_table_bytes(1));
  }
};

Result<std::unique_ptr<ShardMemory>> ShardMemory::make(std::uint64_t image_bytes, WriteBarrier& barrier,
                                                       std::uint32_t colour) {
  const Layout layout(image_bytes, colour);
  auto images = Region::reserve(layout.image_end, "a shard's arenas");
  if (!images) return std::unexpected(images.error());
  auto tables = Region::reserve(layout.end, "a shard's page tables");
  if (!tables) return std::unexpected(tables.error());
  return std::unique_ptr<ShardMemory>(new ShardMemory(std::move(*images), std::move(*tables), layout, barrier));
}

std::uint64_t ShardMemory::reserved_bytes(std::uint64_t image_bytes) {
  const Layout layout(image_bytes, page_bytes / cache_line_bytes - 1);  // the colour that shifts it most
  return layout.image_end + layout.end;
}

ShardMemory::ShardMemory(Region images, Region tables, const Layout& layout, WriteBarrier& barrier)
    : image_region_(std::move(images)),
      tables_(std::move(tables)),
      images_(image_region_.bytes().first(layout.image_end).subspan(layout.images)),
      barrier_(barrier),
      slots_(reinterpret_cast<Slot*>(tables_.data() + layout.slots)),
      arena_marks_(reinterpret_cast<std::uint64_t*>(tables_.data() + layout.arena_marks)),
      page_tables_(tables_.data() + layout.page_tables),
      arena_tree_({reinterpret_cast<Digest*>(tables_.data() + layout.arena_digests),
                   HashTree::storage_digests(layout.max_arenas)},
                  layout.max_arenas) {}

Result<void> ShardMemory::check_room(std::uint64_t capacity_bytes) const {
  if (capacity_bytes <= images_.size() - image_bytes_used_) return {};
  return fail(ErrorCode::full,
              fmt::format("an arena of {} bytes for a shard whose {} arenas have declared {} of {} bytes: give shards "
                          "more memory in genesis, or the actor type a smaller arena",
                          capacity_bytes, arena_count_, image_bytes_used_, images_.size()));
}

ShardMemory::Slot& ShardMemory::make_slot(std::uint64_t capacity_bytes) {
  const std::uint64_t pages = capacity_bytes / page_bytes;
  std::byte* const table = page_tables_ + page_tables_used_;
  const std::span page_marks(reinterpret_cast<std::uint64_t*>(table), words_for(pages));
  const std::uint64_t digests = HashTree::storage_digests(pages);
  auto* const digest_storage = reinterpret_cast<Digest*>(table + page_table_bytes(pages) - digests * sizeof(Digest));
  const PageMarks marks{page_marks.data(), &arena_marks_[arena_count_ / 64], std::uint64_t{1} << (arena_count_ % 64)};
  Slot* const slot =
      new (&slots_[arena_count_]) Slot{Arena(images_.data() + image_bytes_used_, capacity_bytes, barrier_, marks),
                                       HashTree({digest_storage, digests}, pages), page_marks};
  image_bytes_used_ += capacity_bytes;
  page_tables_used_ += page_table_bytes(pages);
  ++arena_count_;
  return *slot;
}

Result<std::uint32_t> ShardMemory::create_arena(std::uint64_t capacity_bytes) {
  if (auto room = check_room(capacity_bytes); !room) return std::unexpected(room.error());
  static_cast<void>(make_slot(capacity_bytes));
  return arena_count_ - 1;
}

Result<void> ShardMemory::fill_image(std::byte* at, std::uint64_t capacity_bytes, std::uint64_t image_bytes,
                                     const Fill& fill) const {
  const auto refuse = [&] {
    return fail(ErrorCode::corrupt, fmt::format("an image of a snapshot, of {} bytes, is not that of an arena of {} "
                                                "bytes",
                                                image_bytes, capacity_bytes));
  };
  if (image_bytes > capacity_bytes) return refuse();
  const std::span<std::byte> image(at, image_bytes);
  auto filled = fill(image);
  if (filled && !Arena::is_image(image, capacity_bytes)) filled = refuse();
  if (!filled) std::ranges::fill(image, std::byte{0});
  return filled;
}

Result<std::uint32_t> ShardMemory::restore_arena(std::uint64_t capacity_bytes, std::uint64_t image_bytes,
                                                 const Fill& fill) {
  if (auto room = check_room(capacity_bytes); !room) return std::unexpected(room.error());
  if (auto filled = fill_image(images_.data() + image_bytes_used_, capacity_bytes, image_bytes, fill); !filled)
    return std::unexpected(filled.error());
  static_cast<void>(make_slot(capacity_bytes));
  return arena_count_ - 1;
}

Result<void> ShardMemory::replace_image(std::uint32_t index, std::uint64_t image_bytes, const Fill& fill) {
  Slot& slot = slots_[index];
  std::byte* const base = slot.arena.at(Link{});
  const std::uint64_t capacity_bytes = slot.arena.capacity_bytes();
  std::ranges::fill(std::span(base, slot.arena.image().size()), std::byte{0});
  if (auto filled = fill_image(base, capacity_bytes, image_bytes, fill); !filled) return filled;
  const PageMarks marks{slot.page_marks.data(), &arena_marks_[index / 64], std::uint64_t{1} << (index % 64)};
  new (&slot.arena) Arena(base, capacity_bytes, barrier_, marks);
  return {};
}

void ShardMemory::undo_create() {
  LOCKSTEP_ASSERT(arena_count_ > 0, "the creation of an arena was undone where there is none");
  const std::uint32_t last = arena_count_ - 1;
  Slot& slot = slots_[last];
  LOCKSTEP_ASSERT(slot.pages.leaf_count() == 0, "the creation of an arena was undone after a checkpoint");
  const std::uint64_t used_bytes = slot.arena.image().size();  // little: undo has cleared what lies beyond
  std::memset(slot.arena.at(Link{}), 0, used_bytes);
  std::ranges::fill(slot.page_marks.first(words_for(round_up(used_bytes) / page_bytes)), 0);
  arena_marks_[last / 64] &= ~(std::uint64_t{1} << (last % 64));
  image_bytes_used_ -= slot.arena.capacity_bytes();
  page_tables_used_ -= page_table_bytes(slot.arena.capacity_bytes() / page_bytes);
  arena_count_ = last;
}

/// Where many small actors changed, most of a digest's time would be waiting for their images.
void ShardMemory::prefetch(const Slot& slot) {
  const std::byte* const image = slot.arena.at(Link{});
  for (std::size_t line = 0; line < prefetched_bytes; line += 64) __builtin_prefetch(image + line);
  __builtin_prefetch(slot.page_marks.data());
}

Digest ShardMemory::digest() {
  const std::span marks(arena_marks_, words_for(arena_count_));
  arena_tree_.resize(arena_count_, {});
  std::array<std::uint32_t, 64> changed;
  for (std::uint32_t word = 0; word < marks.size(); ++word) {
    std::size_t count = 0;
    for (std::uint64_t left = marks[word]; left != 0; left &= left - 1) {
      changed[count++] = word * 64 + static_cast<std::uint32_t>(std::countr_zero(left));
    }
    for (std::size_t i = 0; i < count; ++i) {
      if (i + 2 < count) prefetch(slots_[changed[i + 2]]);
      update_pages(changed[i]);
    }
  }
  arena_tree_.update(marks);
  std::ranges::fill(marks, 0);
  return arena_tree_.root();
}

void ShardMemory::update_pages(std::uint32_t index) {
  Slot& slot = slots_[index];
  const std::span<const std::byte> image = slot.arena.image();
  const std::uint64_t pages = round_up(image.size()) / page_bytes;
  slot.pages.resize(pages, zero_page_digest());
  const std::span<std::uint64_t> marks = slot.page_marks.first(words_for(pages));
  for (std::uint64_t word = 0; word < marks.size(); ++word) {
    for (std::uint64_t left = marks[word]; left != 0; left &= left - 1) {
      const std::uint64_t begin = (word * 64 + static_cast<std::uint64_t>(std::countr_zero(left))) * page_bytes;
      if (begin >= image.size()) break;
      const std::uint64_t length = std::min<std::uint64_t>(page_bytes, image.size() - begin);
      slot.pages.set_leaf(begin / page_bytes, xxh3_128(image.subspan(begin, length)));
    }
  }
  slot.pages.update(marks);
  std::ranges::fill(marks, 0);
  arena_tree_.set_leaf(index, slot.pages.root());
}

}  // namespace lockstep
