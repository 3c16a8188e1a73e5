// SPDX-License-Identifier: Apache-2.0
#pragma once

/// Vector: a growable array in the arena. Not copyable (`clone()` is explicit), movable in O(1); a default-constructed
/// one is all zero bytes and owns nothing.
///
///     lockstep::Vector<Order> orders;
///     orders.push_back({.id = 7, .price = 100});
///     orders[0].price += 1;                                 // checked; announced to the write barrier
///     for (const Order& order : orders.view()) sum += order.price;   // reading: announces nothing
///
/// In a handler that is not const, operator[] and begin() announce a write of what they give out, so use peek() and
/// view() to read. What grows or erases invalidates references, iterators and views. Inside a handler only.

#include <algorithm>
#include <initializer_list>
#include <span>

#include "lockstep/elements.hpp"

namespace lockstep {

template <class T>
class alignas(8) Vector {
 public:
  using value_type = T;

  Vector() = default;
  Vector(Vector&& other) noexcept { swap(other); }
  Vector& operator=(Vector&& other) noexcept {
    if (this != &other) {
      clear();
      swap(other);
    }
    return *this;
  }
  Vector(const Vector&) = delete;
  Vector& operator=(const Vector&) = delete;
  ~Vector() {
    static_assert(check_element<T>());
    clear();
  }

  [[nodiscard]] Vector clone() const {
    Vector copy;
    copy.reserve(size_);
    for (const T& element : view()) copy.push_back(detail::clone_of(element));
    return copy;
  }

  [[nodiscard]] std::size_t size() const { return size_; }
  [[nodiscard]] bool empty() const { return size_ == 0; }
  [[nodiscard]] std::size_t capacity() const { return capacity_; }

  /// Throws std::out_of_range, which traps the handler.
  [[nodiscard]] T& operator[](std::size_t index) {
    T* const element = data() + checked(index);
    detail::announce(element, 1);
    return *element;
  }
  [[nodiscard]] const T& operator[](std::size_t index) const { return peek(index); }
  [[nodiscard]] const T& peek(std::size_t index) const { return data()[checked(index)]; }
  [[nodiscard]] T& back() { return (*this)[size_ - 1]; }
  [[nodiscard]] const T& back() const { return peek(size_ - 1); }

  [[nodiscard]] std::span<const T> view() const { return {data(), size_}; }
  /// Announces a write of all elements.
  [[nodiscard]] T* begin() {
    if (size_ != 0) detail::announce(data(), size_);
    return data();
  }
  [[nodiscard]] T* end() { return data() + size_; }
  [[nodiscard]] const T* begin() const { return data(); }
  [[nodiscard]] const T* end() const { return data() + size_; }

  void push_back(T value) { append(std::move(value)); }
  template <class... Args>
  T& emplace_back(Args&&... args) {
    return append(T(std::forward<Args>(args)...));
  }
  void pop_back() { erase(std::size_t{size_} - 1); }

  /// Before the element at `index`, or at the end when `index` is the size.
  void insert(std::size_t index, T value) {
    if (index > size_) detail::throw_out_of_range("Vector", index, size_);
    if (size_ == capacity_) reserve_for(std::uint64_t{size_} + 1);
    T* const slot = data() + index;
    detail::announce(slot, size_ - index + 1);
    detail::relocate(slot + 1, slot, size_ - index);
    ::new (static_cast<void*>(slot)) T(std::move(value));
    ++size_;
  }
  /// Keeps the order of the rest.
  void erase(std::size_t index) { erase(index, 1); }
  void erase(std::size_t index, std::size_t count) {
    if (count > size_ || index > size_ - count) detail::throw_out_of_range("Vector", index, size_);
    if (count == 0) return;
    T* const first = data() + index;
    detail::announce(first, size_ - index);
    detail::destroy(first, count);
    detail::relocate(first, first + count, size_ - index - count);
    size_ -= static_cast<std::uint32_t>(count);
    detail::zero(data() + size_, count);
  }

  /// New elements are default values.
  void resize(std::size_t size) {
    if (size <= size_) return erase(size, size_ - size);
    reserve(size);
    detail::announce(data() + size_, size - size_);
    for (; size_ < size; ++size_) ::new (static_cast<void*>(data() + size_)) T();
  }
  void reserve(std::size_t capacity) {
    if (capacity > capacity_) reallocate(detail::fitting_capacity<T>(capacity));
  }
  /// Gives all memory back.
  void clear() noexcept {
    if (data_.is_null()) return;
    detail::destroy(data(), size_);
    detail::free_block(data_, std::uint64_t{capacity_} * sizeof(T));
    data_ = {};
    size_ = capacity_ = 0;
  }

  void assign(std::span<const T> values) {
    clear();
    reserve(values.size());
    for (const T& value : values) push_back(detail::clone_of(value));
  }
  void assign(std::initializer_list<T> values) { assign(std::span<const T>(values.begin(), values.size())); }

  friend bool operator==(const Vector& a, const Vector& b) { return std::ranges::equal(a.view(), b.view()); }

 private:
  [[nodiscard]] T* data() { return data_.is_null() ? nullptr : detail::block_at<T>(data_); }
  [[nodiscard]] const T* data() const { return data_.is_null() ? nullptr : detail::block_at<T>(data_); }
  [[nodiscard]] std::size_t checked(std::size_t index) const {
    if (index >= size_) [[unlikely]]
      detail::throw_out_of_range("Vector", index, size_);
    return index;
  }
  void swap(Vector& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(size_, other.size_);
    std::swap(capacity_, other.capacity_);
  }
  T& append(T&& value) {
    if (size_ == capacity_) [[unlikely]]
      reserve_for(std::uint64_t{size_} + 1);
    T* const slot = data() + size_;
    detail::announce(slot, 1);
    ::new (static_cast<void*>(slot)) T(std::move(value));
    ++size_;
    return *slot;
  }
  [[gnu::noinline]] void reserve_for(std::uint64_t needed) { reallocate(detail::grown_capacity<T>(capacity_, needed)); }
  void reallocate(std::uint32_t capacity) {
    const Link link = detail::allocate_block(std::uint64_t{capacity} * sizeof(T));
    if (size_ != 0) {
      T* const to = detail::block_at<T>(link);
      detail::announce(to, size_);
      detail::relocate(to, data(), size_);
    }
    if (!data_.is_null()) detail::free_block(data_, std::uint64_t{capacity_} * sizeof(T));
    data_ = link;
    capacity_ = capacity;
  }

  Link data_;
  std::uint32_t size_ = 0;
  std::uint32_t capacity_ = 0;
  [[maybe_unused]] std::uint32_t zero_ = 0;
};
static_assert(sizeof(Vector<std::uint8_t>) == 16);

template <class T>
struct ContainerTraits<Vector<T>> {
  static constexpr std::string_view kind = "vector/1";
  static constexpr std::uint64_t parameter = 0;
  using Elements = TypeList<T>;
};

}  // namespace lockstep
