// SPDX-License-Identifier: Apache-2.0
#pragma once

/// String: bytes in the arena, read as std::string_view. Up to 12 bytes lie in the object itself (which of the two it
/// is follows from the size alone); longer ones in a block. Not copyable (`clone()` is explicit), movable in O(1); a
/// default-constructed one is all zero bytes. Knows nothing of encodings; compares byte by byte, as unsigned.
///
///     lockstep::String name;
///     name.assign(message.name()->string_view());
///     if (name.view().starts_with("eu-")) ...
///
/// What changes a string invalidates its views. At most 4 GiB. Inside a handler only.

#include <compare>
#include <string_view>

#include "lockstep/elements.hpp"

namespace lockstep {

class alignas(8) String {
 public:
  String() = default;
  explicit String(std::string_view text) { assign(text); }
  String(String&& other) noexcept { swap(other); }
  String& operator=(String&& other) noexcept {
    if (this != &other) {
      clear();
      swap(other);
    }
    return *this;
  }
  String(const String&) = delete;
  String& operator=(const String&) = delete;
  ~String() { free_block(); }

  [[nodiscard]] String clone() const { return String(view()); }

  [[nodiscard]] std::string_view view() const { return {chars(), size_}; }
  operator std::string_view() const { return view(); }
  [[nodiscard]] std::size_t size() const { return size_; }
  [[nodiscard]] bool empty() const { return size_ == 0; }

  /// `text` may be a part of this string.
  void assign(std::string_view text) {
    if (text.size() > capacity()) return replace(text, {});
    if (size_ > inline_bytes && text.size() <= inline_bytes) return shrink_to_inline(text);
    write(0, text);
    set_size(text.size());
  }
  String& operator=(std::string_view text) {
    assign(text);
    return *this;
  }
  void append(std::string_view text) {
    const std::size_t size = size_ + text.size();
    if (size > capacity()) return replace(view(), text);
    write(size_, text);
    size_ = static_cast<std::uint32_t>(size);
  }
  String& operator+=(std::string_view text) {
    append(text);
    return *this;
  }
  void push_back(char c) { append({&c, 1}); }
  /// Cuts to the first `size` bytes, if there are more.
  void truncate(std::size_t size) {
    if (size < size_) assign(view().substr(0, size));
  }
  /// Gives all memory back.
  void clear() noexcept {
    free_block();
    std::memset(bytes_, 0, sizeof bytes_);
    size_ = 0;
  }

  friend bool operator==(const String& a, const String& b) { return a.view() == b.view(); }
  friend bool operator==(const String& a, std::string_view b) { return a.view() == b; }
  friend std::strong_ordering operator<=>(const String& a, const String& b) { return a.view() <=> b.view(); }
  friend std::strong_ordering operator<=>(const String& a, std::string_view b) { return a.view() <=> b; }

 private:
  static constexpr std::size_t inline_bytes = 12;
  struct Block {  // what bytes_ holds when size_ > inline_bytes
    Link link;
    std::uint32_t capacity_bytes;
    std::uint32_t zero;
  };
  static_assert(sizeof(Block) == inline_bytes);

  [[nodiscard]] Block block() const {
    Block block;
    std::memcpy(&block, bytes_, sizeof block);
    return block;
  }
  [[nodiscard]] std::size_t capacity() const { return size_ > inline_bytes ? block().capacity_bytes : inline_bytes; }
  [[nodiscard]] char* chars() { return size_ > inline_bytes ? detail::block_at<char>(block().link) : bytes_; }
  [[nodiscard]] const char* chars() const {
    return size_ > inline_bytes ? detail::block_at<char>(block().link) : bytes_;
  }
  void free_block() noexcept {
    if (size_ > inline_bytes) detail::free_block(block().link, block().capacity_bytes);
  }

  void write(std::size_t at, std::string_view text) {
    if (text.empty()) return;
    char* const to = chars() + at;
    detail::announce(to, text.size());
    std::memmove(to, text.data(), text.size());
  }
  /// The representation does not change.
  void set_size(std::size_t size) {
    if (size < size_) {
      detail::announce(chars() + size, size_ - size);
      detail::zero(chars() + size, size_ - size);
    }
    size_ = static_cast<std::uint32_t>(size);
  }
  void shrink_to_inline(std::string_view text) {
    char bytes[inline_bytes] = {};
    text.copy(bytes, inline_bytes);
    const auto size = static_cast<std::uint32_t>(text.size());
    free_block();
    std::memcpy(bytes_, bytes, sizeof bytes);
    size_ = size;
  }
  /// Moves to a new block that begins with these two.
  void replace(std::string_view head, std::string_view tail) {
    const std::size_t size = head.size() + tail.size();
    const Block fresh = {{}, detail::fitting_capacity<char>(size + (tail.empty() ? 0 : size / 2)), 0};
    const Link link = detail::allocate_block(fresh.capacity_bytes);
    char* const to = detail::block_at<char>(link);
    detail::announce(to, size);
    head.copy(to, head.size());
    tail.copy(to + head.size(), tail.size());
    free_block();
    const Block block = {link, fresh.capacity_bytes, 0};
    std::memcpy(bytes_, &block, sizeof block);
    size_ = static_cast<std::uint32_t>(size);
  }
  void swap(String& other) noexcept {
    std::swap(size_, other.size_);
    std::swap(bytes_, other.bytes_);
  }

  std::uint32_t size_ = 0;
  char bytes_[inline_bytes] = {};
};
static_assert(sizeof(String) == 16);

template <>
struct ContainerTraits<String> {
  static constexpr std::string_view kind = "string/1";
  static constexpr std::uint64_t parameter = 0;
  using Elements = TypeList<>;
};

}  // namespace lockstep
