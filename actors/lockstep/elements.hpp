// SPDX-License-Identifier: Apache-2.0
#pragma once

/// Elements: what all containers of the SDK do to raw memory of the current arena. The containers' common invariants:
///
///   * a container of zero bytes is an empty one, so zeroed memory is a valid state;
///   * memory that holds no element is zero, and so equal histories give equal bytes;
///   * elements are moved by memcpy: nothing in state knows its own address;
///   * a container's own few bytes lie in its owner, whose mutable access was announced to the write barrier before the
///     reference was handed out (the root object by the executor); so only what lies in blocks is announced here;
///   * destructors free but never write, so they cannot trap.
///
/// Internal to the containers. Belongs to the thread of the current arena.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>

#include "lockstep/arena.hpp"
#include "lockstep/persistent.hpp"

namespace lockstep::detail {

[[noreturn, gnu::cold, gnu::noinline]] inline void throw_out_of_range(const char* container, std::size_t index,
                                                                      std::size_t size) {
  throw std::out_of_range("lockstep::" + std::string(container) + ": index " + std::to_string(index) +
                          " is not below its size, " + std::to_string(size));
}

/// A block of the current arena. Throws TrapError{arena_exhausted} at 4 GiB as at the arena's end.
[[nodiscard]] inline Link allocate_block(std::uint64_t bytes) {
  if (bytes > UINT32_MAX) throw TrapError{TrapKind::arena_exhausted};
  return Arena::current().allocate(static_cast<std::uint32_t>(bytes));
}

inline void free_block(Link link, std::uint64_t bytes) noexcept {
  Arena::current().free(link, static_cast<std::uint32_t>(bytes));
}

template <class T>
[[nodiscard]] T* block_at(Link link) {
  return reinterpret_cast<T*>(Arena::current().at(link));
}

/// Announces a write of `count` elements. Throws TrapError{write_budget}.
template <class T>
void announce(T* first, std::size_t count) {
  Arena::current().before_write(first, count * sizeof(T));
}

/// How many elements to ask a block for, so that none of its size class is wasted. `wanted` * sizeof(T) < 4 GiB.
template <class T>
[[nodiscard]] std::uint32_t fitting_capacity(std::uint64_t wanted) {
  const std::uint64_t bytes = wanted * sizeof(T);
  if (bytes > UINT32_MAX) throw TrapError{TrapKind::arena_exhausted};
  const std::uint64_t whole = class_bytes(size_class(static_cast<std::uint32_t>(bytes))) / sizeof(T);
  return static_cast<std::uint32_t>(whole * sizeof(T) > UINT32_MAX ? wanted : whole);
}

/// The capacity to grow to when `needed` elements do not fit into `capacity`.
template <class T>
[[nodiscard]] std::uint32_t grown_capacity(std::uint32_t capacity, std::uint64_t needed) {
  constexpr std::uint64_t first_elements = sizeof(T) < 64 ? 64 / sizeof(T) : 1;
  return fitting_capacity<T>(std::max({needed, std::uint64_t{capacity} * 2, first_elements}));
}

// Raw bytes of elements: what they hold moves along, since links are arena-relative. Ranges may overlap.
template <class T>
void relocate(T* to, T* from, std::size_t count) {
  std::memmove(static_cast<void*>(to), static_cast<const void*>(from), count * sizeof(T));
}

template <class T>
void zero(T* first, std::size_t count) {
  std::memset(static_cast<void*>(first), 0, count * sizeof(T));
}

/// Frees what elements hold; their own bytes are left as they are.
template <class T>
void destroy(T* first, std::size_t count) noexcept {
  if constexpr (!std::is_trivially_destructible_v<T>) std::destroy_n(first, count);
}

/// A copy of a value with all that it holds: containers are never copied by accident, only by this or their clone().
template <class T>
[[nodiscard]] T clone_of(const T& value) {
  if constexpr (std::is_copy_constructible_v<T>) {
    return value;
  } else if constexpr (requires { value.clone(); }) {
    return value.clone();
  } else {
    return with_fields(value, [](const auto&... fields) { return T{clone_of(fields)...}; });
  }
}

}  // namespace lockstep::detail
