// SPDX-License-Identifier: Apache-2.0
#pragma once

/// Receives, Sends: what an actor type says about its traffic. `using Receives = lockstep::Receives<Deposit,
/// Withdraw>;` lists every message it has a handler for; `using Sends = lockstep::Sends<Credit>;` every message it
/// sends to actors (replies and timers need no entry). An actor type without `Sends` sends nothing: an application of
/// such types runs without a barrier between cores. Compile time only.

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>

#include "lockstep/message.hpp"

namespace lockstep {

namespace detail {

template <class... Ms>
consteval bool distinct() {
  if constexpr ((Message<Ms> && ...)) {
    std::array<std::uint32_t, sizeof...(Ms)> ids{message_id<Ms>...};
    std::ranges::sort(ids);
    return std::ranges::adjacent_find(ids) == ids.end();
  } else {
    return true;
  }
}

template <class... Ms>
struct MessageList {
  static constexpr std::size_t count = sizeof...(Ms);
  template <class M>
  static constexpr bool contains = (std::same_as<M, Ms> || ...);

  static_assert((Message<Ms> && ...),
                "lockstep: a type in Receives or Sends is no message; list tables or structs that flatc generated with "
                "lockstep's options (--cpp-std c++17 --gen-name-strings)");
  static_assert(
      distinct<Ms...>(),
      "lockstep: a message is listed twice, or the names of two messages have the same id; list each once, or "
      "rename one of them in its schema");
};

}  // namespace detail

template <class... Ms>
struct Receives : detail::MessageList<Ms...> {};

template <class... Ms>
struct Sends : detail::MessageList<Ms...> {};

}  // namespace lockstep
