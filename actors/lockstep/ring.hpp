// SPDX-License-Identifier: Apache-2.0
#pragma once

/// Ring: a growable queue in the arena, a circular array: O(1) at both ends, indexed from the front. Not copyable
/// (`clone()` is explicit), movable in O(1); a default-constructed one is all zero bytes.
///
///     lockstep::Ring<Order> queue;
///     queue.push_back(order);
///     while (!queue.empty() && queue.front().expired(now)) queue.pop_front();
///
/// In a handler that is not const, operator[], front() and back() announce a write of the element: use peek() to read.
/// Growing invalidates references. Inside a handler only.

#include <bit>

#include "lockstep/elements.hpp"

namespace lockstep {

template <class T>
class alignas(8) Ring {
 public:
  using value_type = T;

  Ring() = default;
  Ring(Ring&& other) noexcept { swap(other); }
  Ring& operator=(Ring&& other) noexcept {
    if (this != &other) {
      clear();
      swap(other);
    }
    return *this;
  }
  Ring(const Ring&) = delete;
  Ring& operator=(const Ring&) = delete;
  ~Ring() {
    static_assert(check_element<T>());
    clear();
  }

  [[nodiscard]] Ring clone() const {
    Ring copy;
    for (std::size_t i = 0; i < size_; ++i) copy.push_back(detail::clone_of(peek(i)));
    return copy;
  }

  [[nodiscard]] std::size_t size() const { return size_; }
  [[nodiscard]] bool empty() const { return size_ == 0; }
  /// How many it can hold before it grows, by doubling; 0 at first.
  [[nodiscard]] std::uint32_t capacity() const { return data_.is_null() ? 0 : std::uint32_t{1} << log2_capacity_; }

  /// Index 0 is the front. Throws std::out_of_range, which traps the handler.
  [[nodiscard]] T& operator[](std::size_t index) {
    T* const element = slot(checked(index));
    detail::announce(element, 1);
    return *element;
  }
  [[nodiscard]] const T& operator[](std::size_t index) const { return peek(index); }
  [[nodiscard]] const T& peek(std::size_t index) const { return *slot(checked(index)); }
  [[nodiscard]] T& front() { return (*this)[0]; }
  [[nodiscard]] const T& front() const { return peek(0); }
  [[nodiscard]] T& back() { return (*this)[std::size_t{size_} - 1]; }
  [[nodiscard]] const T& back() const { return peek(std::size_t{size_} - 1); }

  void push_back(T value) {
    if (size_ == capacity()) grow();
    construct(slot(size_), std::move(value));
  }
  void push_front(T value) {
    if (size_ == capacity()) grow();
    T* const to = slot(capacity() - 1);  // the place before the front
    head_ = (head_ - 1) & (capacity() - 1);
    construct(to, std::move(value));
  }
  void pop_front() {
    remove(slot(checked(0)));
    head_ = (head_ + 1) & (capacity() - 1);
  }
  void pop_back() { remove(slot(checked(std::size_t{size_} - 1))); }

  /// Gives all memory back.
  void clear() noexcept {
    if (data_.is_null()) return;
    if constexpr (!std::is_trivially_destructible_v<T>) {
      for (std::uint32_t i = 0; i < size_; ++i) detail::destroy(slot(i), 1);
    }
    detail::free_block(data_, std::uint64_t{capacity()} * sizeof(T));
    data_ = {};
    head_ = size_ = 0;
    log2_capacity_ = 0;
  }

  friend bool operator==(const Ring& a, const Ring& b) {
    if (a.size_ != b.size_) return false;
    for (std::size_t i = 0; i < a.size_; ++i) {
      if (!(a.peek(i) == b.peek(i))) return false;
    }
    return true;
  }

 private:
  [[nodiscard]] T* slot(std::size_t index) const {
    return detail::block_at<T>(data_) + ((head_ + index) & (capacity() - 1));
  }
  [[nodiscard]] std::size_t checked(std::size_t index) const {
    if (index >= size_) [[unlikely]]
      detail::throw_out_of_range("Ring", index, size_);
    return index;
  }
  void construct(T* at, T&& value) {
    detail::announce(at, 1);
    ::new (static_cast<void*>(at)) T(std::move(value));
    ++size_;
  }
  void remove(T* at) {
    detail::announce(at, 1);
    detail::destroy(at, 1);
    detail::zero(at, 1);
    --size_;
  }
  /// To twice the capacity, with the front at place 0.
  [[gnu::noinline]] void grow() {
    constexpr std::uint64_t first = std::bit_ceil(sizeof(T) < 64 ? 64 / sizeof(T) : 1);
    const std::uint64_t larger = data_.is_null() ? first : std::uint64_t{capacity()} * 2;
    const Link link = detail::allocate_block(larger * sizeof(T));
    T* const to = detail::block_at<T>(link);
    if (size_ != 0) {
      detail::announce(to, size_);
      const std::uint32_t until_wrap = std::min(size_, capacity() - head_);
      detail::relocate(to, slot(0), until_wrap);
      detail::relocate(to + until_wrap, detail::block_at<T>(data_), size_ - until_wrap);
    }
    if (!data_.is_null()) detail::free_block(data_, std::uint64_t{capacity()} * sizeof(T));
    data_ = link;
    log2_capacity_ = static_cast<std::uint8_t>(std::countr_zero(larger));
    head_ = 0;
  }
  void swap(Ring& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(head_, other.head_);
    std::swap(size_, other.size_);
    std::swap(log2_capacity_, other.log2_capacity_);
  }

  Link data_;
  std::uint32_t head_ = 0;
  std::uint32_t size_ = 0;
  std::uint8_t log2_capacity_ = 0;
  [[maybe_unused]] std::uint8_t zeros_[3] = {};
};
static_assert(sizeof(Ring<std::uint8_t>) == 16);

template <class T>
struct ContainerTraits<Ring<T>> {
  static constexpr std::string_view kind = "ring/1";
  static constexpr std::uint64_t parameter = 0;
  using Elements = TypeList<T>;
};

}  // namespace lockstep
