// SPDX-License-Identifier: Apache-2.0
#pragma once

/// ArenaFixture: a stand-alone arena for tests of what lives in one: memory, marks and barrier of its own, and made
/// current on this thread for its lifetime. commit() and undo() end a step as the executor does. Fixtures nest; the
/// newest is the current one. One thread.

#include <cstring>
#include <memory>
#include <new>
#include <span>
#include <string_view>
#include <vector>

#include "lockstep/arena.hpp"

namespace lockstep::testing {

class ArenaFixture {
 public:
  static constexpr std::uint64_t default_capacity_bytes = std::uint64_t{1} << 20;
  static constexpr std::size_t default_budget_bytes = std::size_t{1} << 22;

  explicit ArenaFixture(std::uint64_t capacity_bytes = default_capacity_bytes,
                        std::size_t write_budget_bytes = default_budget_bytes)
      : ArenaFixture({}, capacity_bytes, write_budget_bytes) {}

  /// An arena at another address that goes on from the bytes of this image.
  ArenaFixture(std::span<const std::byte> image, std::uint64_t capacity_bytes,
               std::size_t write_budget_bytes = default_budget_bytes)
      : memory_(zeroed_pages(capacity_bytes, image)),
        log_(write_budget_bytes / sizeof(Unit)),
        page_marks_((capacity_bytes / page_bytes + 63) / 64),
        barrier_(std::as_writable_bytes(std::span(log_))),
        arena_(memory_.get(), capacity_bytes, barrier_, {page_marks_.data(), &arena_mark_, 1}),
        before_(Arena::set_current(&arena_)) {}
  ~ArenaFixture() { Arena::set_current(before_); }
  ArenaFixture(const ArenaFixture&) = delete;
  ArenaFixture& operator=(const ArenaFixture&) = delete;

  [[nodiscard]] Arena& arena() { return arena_; }
  [[nodiscard]] WriteBarrier& barrier() { return barrier_; }
  void commit() { barrier_.commit(); }
  void undo() { barrier_.undo(); }
  /// Makes this one the current arena again, below a newer fixture.
  void use() { Arena::set_current(&arena_); }

  [[nodiscard]] std::vector<std::byte> copy_image() const { return {arena_.image().begin(), arena_.image().end()}; }
  [[nodiscard]] bool has_image(std::span<const std::byte> expected) const {
    const std::span<const std::byte> image = arena_.image();
    return image.size() == expected.size() && std::memcmp(image.data(), expected.data(), image.size()) == 0;
  }
  /// Whether all beyond the high-water mark is zero, as an image's owner may rely on.
  [[nodiscard]] bool is_zero_beyond_image() const {
    const std::span rest(memory_.get() + arena_.image().size(), memory_.get() + arena_.capacity_bytes());
    return rest.empty() || (rest[0] == std::byte{0} && std::memcmp(&rest[0], &rest[0] + 1, rest.size() - 1) == 0);
  }

  [[nodiscard]] bool is_marked(std::uint64_t page) const { return (page_marks_[page / 64] >> (page % 64) & 1) != 0; }
  void clear_marks() {
    page_marks_.assign(page_marks_.size(), 0);
    arena_mark_ = 0;
  }
  [[nodiscard]] bool is_arena_marked() const { return arena_mark_ != 0; }

 private:
  struct alignas(16) Unit {
    std::byte bytes[16];
  };
  struct FreePages {
    void operator()(std::byte* pages) const { ::operator delete[](pages, std::align_val_t{page_bytes}); }
  };
  using Pages = std::unique_ptr<std::byte[], FreePages>;

  static Pages zeroed_pages(std::uint64_t bytes, std::span<const std::byte> image) {
    Pages pages(new (std::align_val_t{page_bytes}) std::byte[bytes]{});
    if (!image.empty()) std::memcpy(pages.get(), image.data(), image.size());
    return pages;
  }

  Pages memory_;
  std::vector<Unit> log_;
  std::vector<std::uint64_t> page_marks_;
  std::uint64_t arena_mark_ = 0;
  WriteBarrier barrier_;
  Arena arena_;
  Arena* before_;
};

}  // namespace lockstep::testing
