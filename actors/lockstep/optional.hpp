// SPDX-License-Identifier: Apache-2.0
#pragma once

/// Optional: a value or none, in place, with no byte left undefined: an empty one is all zero bytes. It lies in its
/// owner, so it announces no writes of its own. Not copyable (`clone()` is explicit). What it holds may own arena
/// memory: use it inside a handler only.

#include "lockstep/elements.hpp"

namespace lockstep {

template <class T>
class Optional {
 public:
  using value_type = T;

  Optional() = default;
  explicit Optional(T value) { emplace(std::move(value)); }
  Optional(Optional&& other) noexcept { take(other); }
  Optional& operator=(Optional&& other) noexcept {
    if (this != &other) {
      reset();
      take(other);
    }
    return *this;
  }
  Optional& operator=(T value) {
    emplace(std::move(value));
    return *this;
  }
  Optional(const Optional&) = delete;
  Optional& operator=(const Optional&) = delete;
  ~Optional() {
    static_assert(check_element<T>());
    if (has_value()) detail::destroy(object(), 1);
  }

  [[nodiscard]] Optional clone() const { return has_value() ? Optional(detail::clone_of(**this)) : Optional(); }

  [[nodiscard]] bool has_value() const { return engaged_[0] != 0; }
  explicit operator bool() const { return has_value(); }

  /// Throws std::out_of_range when there is none, which traps the handler.
  [[nodiscard]] T& operator*() { return *checked(); }
  [[nodiscard]] const T& operator*() const { return *const_cast<Optional*>(this)->checked(); }
  [[nodiscard]] T* operator->() { return checked(); }
  [[nodiscard]] const T* operator->() const { return const_cast<Optional*>(this)->checked(); }
  [[nodiscard]] T value_or(T fallback) const { return has_value() ? **this : fallback; }

  template <class... Args>
  T& emplace(Args&&... args) {
    T value(std::forward<Args>(args)...);
    reset();
    T* const made = ::new (static_cast<void*>(storage_)) T(std::move(value));
    engaged_[0] = 1;
    return *made;
  }
  void reset() noexcept {
    if (!has_value()) return;
    detail::destroy(object(), 1);
    std::memset(storage_, 0, sizeof storage_);
    engaged_[0] = 0;
  }

  friend bool operator==(const Optional& a, const Optional& b) {
    return a.has_value() == b.has_value() && (!a.has_value() || *a == *b);
  }

 private:
  [[nodiscard]] T* object() { return reinterpret_cast<T*>(storage_); }
  [[nodiscard]] T* checked() {
    if (!has_value()) [[unlikely]]
      detail::throw_out_of_range("Optional", 0, 0);
    return object();
  }
  void take(Optional& other) noexcept {
    std::memcpy(storage_, other.storage_, sizeof storage_);
    std::memset(other.storage_, 0, sizeof other.storage_);
    std::swap(engaged_[0], other.engaged_[0]);
  }

  alignas(T) std::byte storage_[sizeof(T)] = {};
  std::uint8_t engaged_[alignof(T)] = {};  // as wide as T is aligned: no padding
};
static_assert(sizeof(Optional<std::uint64_t>) == 16 && sizeof(Optional<std::uint8_t>) == 2);

template <class T>
struct ContainerTraits<Optional<T>> {
  static constexpr std::string_view kind = "optional/1";
  static constexpr std::uint64_t parameter = 0;
  using Elements = TypeList<T>;
};

}  // namespace lockstep
