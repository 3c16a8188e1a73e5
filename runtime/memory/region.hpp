// SPDX-License-Identifier: Apache-2.0
#pragma once

/// Region: a range of zeroed pages from the kernel, given back when it goes. Two kinds: allocate() for what will all be
/// used (batch pool, tick arenas, rings), on huge pages where the host has them; reserve() for a large range of which
/// only what is touched ever takes memory (state). Cold path; any thread may own one.

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <utility>

#include "base/error.hpp"

namespace lockstep {

enum class PageKind {
  huge,         ///< hugetlbfs pages, set aside by the operator
  transparent,  ///< ordinary memory that the kernel may back with huge pages
  plain,
};

class Region {
 public:
  Region() = default;
  /// At least `bytes`, tried as huge, then transparent, then plain pages; one log line says which `purpose` got.
  [[nodiscard]] static Result<Region> allocate(std::size_t bytes, std::string_view purpose);
  /// Address space for `bytes`, committed page by page on first touch. Without huge pages: they would commit 2 MiB for
  /// an arena that uses 4 KiB.
  [[nodiscard]] static Result<Region> reserve(std::size_t bytes, std::string_view purpose);

  Region(Region&& other) noexcept
      : data_(std::exchange(other.data_, nullptr)), size_(std::exchange(other.size_, 0)), pages_(other.pages_) {}
  Region& operator=(Region&& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(size_, other.size_);
    std::swap(pages_, other.pages_);
    return *this;
  }
  ~Region();

  [[nodiscard]] std::byte* data() const { return data_; }
  [[nodiscard]] std::size_t size() const { return size_; }
  [[nodiscard]] std::span<std::byte> bytes() const { return {data_, size_}; }
  [[nodiscard]] PageKind pages() const { return pages_; }

 private:
  Region(void* data, std::size_t size, PageKind pages)
      : data_(static_cast<std::byte*>(data)), size_(size), pages_(pages) {}

  std::byte* data_ = nullptr;
  std::size_t size_ = 0;
  PageKind pages_ = PageKind::plain;
};

}  // namespace lockstep
