// SPDX-License-Identifier: Apache-2.0
#pragma once

/// Address: who an actor is, the same on every replica and in every run: a type and a key within it. Never a pointer.
/// Pure functions; any thread.

#include <compare>
#include <cstdint>
#include <string_view>

namespace lockstep {

/// FNV-1a of a name: the stable id of an actor type or of a message type. Two names of one application that collide are
/// refused at compile time. Source: http://www.isthe.com/chongo/tech/comp/fnv/.
[[nodiscard]] constexpr std::uint32_t name_id(std::string_view name) {
  std::uint32_t hash = 2166136261U;
  for (const char c : name) hash = (hash ^ static_cast<std::uint8_t>(c)) * 16777619U;
  return hash;
}

struct Address {
  std::uint32_t type = 0;  ///< name_id of the actor type's name; 0 is nobody (the world outside)
  std::uint32_t zero = 0;
  std::uint64_t key = 0;

  friend constexpr bool operator==(const Address&, const Address&) = default;
  friend constexpr auto operator<=>(const Address&, const Address&) = default;
};
static_assert(sizeof(Address) == 16);

/// An address whose actor type is known, so that a send to it can be checked at compile time.
template <class Actor>
struct Ref {
  std::uint64_t key = 0;
  [[nodiscard]] constexpr Address address() const { return {name_id(Actor::name), 0, key}; }
};

template <class Actor>
[[nodiscard]] constexpr Ref<Actor> ref(std::uint64_t key) {
  return {key};
}

}  // namespace lockstep
