// SPDX-License-Identifier: Apache-2.0
#pragma once

/// Array: a fixed array, in place, whose index is checked. It lies in its owner, so it announces no writes of its own;
/// a default-constructed one holds default values. An aggregate: `Array<std::uint32_t, 3> levels{{1, 2, 3}};`.

#include "lockstep/elements.hpp"

namespace lockstep {

template <class T, std::size_t N>
struct Array {
  static_assert(N > 0, "lockstep: an Array holds at least one element");
  using value_type = T;

  T items[N] = {};

  [[nodiscard]] static constexpr std::size_t size() { return N; }
  /// Throws std::out_of_range, which traps the handler.
  [[nodiscard]] constexpr T& operator[](std::size_t index) { return items[checked(index)]; }
  [[nodiscard]] constexpr const T& operator[](std::size_t index) const { return items[checked(index)]; }
  [[nodiscard]] constexpr T* begin() { return items; }
  [[nodiscard]] constexpr T* end() { return items + N; }
  [[nodiscard]] constexpr const T* begin() const { return items; }
  [[nodiscard]] constexpr const T* end() const { return items + N; }
  constexpr void fill(const T& value) { std::fill_n(items, N, value); }
  [[nodiscard]] Array clone() const {
    Array copy;
    for (std::size_t i = 0; i < N; ++i) copy.items[i] = detail::clone_of(items[i]);
    return copy;
  }

  friend constexpr bool operator==(const Array&, const Array&) = default;

 private:
  static constexpr std::size_t checked(std::size_t index) {
    if (index >= N) [[unlikely]]
      detail::throw_out_of_range("Array", index, N);
    return index;
  }
};

template <class T, std::size_t N>
struct ContainerTraits<Array<T, N>> : ContainerTraits<T[N]> {};

}  // namespace lockstep
