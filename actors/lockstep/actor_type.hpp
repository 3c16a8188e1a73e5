// SPDX-License-Identifier: Apache-2.0
#pragma once

/// ActorType: what the runtime knows of a user's actor type, as constant tables of function pointers made at compile
/// time. Nothing is registered and nothing is virtual. `actor_type<A>` also checks A, each rule with a message that
/// names the rule and the remedy. Any thread.

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <new>
#include <span>
#include <type_traits>

#include "lockstep/context.hpp"
#include "lockstep/message.hpp"
#include "lockstep/persistent.hpp"
#include "lockstep/query.hpp"
#include "lockstep/receives.hpp"

namespace lockstep {

/// How one message reaches one actor type. Exactly one of `handle` and `answer` is set.
struct Handler {
  std::uint32_t message_type = 0;
  const char* message_name = nullptr;
  bool (*verify)(std::span<const std::byte> payload) = nullptr;
  void (*handle)(std::byte* root, const std::byte* payload, Context&) = nullptr;
  void (*answer)(const std::byte* root, const std::byte* payload, Query&) = nullptr;

  /// Answered on executed state, not journaled.
  [[nodiscard]] constexpr bool is_query() const { return answer != nullptr; }
};

struct ActorType {
  std::uint32_t id = 0;
  std::uint32_t root_bytes = 0;
  const char* name = nullptr;
  std::uint64_t layout = 0;                            ///< layout_digest of the state
  std::uint64_t arena_bytes = 0;                       ///< capacity of each actor's arena
  void (*construct)(std::byte* root) = nullptr;        ///< into zeroes
  void (*start)(std::byte* root, Context&) = nullptr;  ///< null when the type has none
  std::span<const Handler> handlers;
  std::span<const std::uint32_t> sends;  ///< message types it may send; empty when it sends nothing
};

inline constexpr std::uint64_t default_arena_bytes = 16U << 20U;

namespace detail {

template <class A, class M>
concept Handles = requires(A& actor, const M& message, Context& cx) {
  { actor.on(message, cx) } -> std::same_as<void>;
};
template <class A, class M>
concept Answers = requires(const A& actor, const M& message, Query& query) {
  { actor.on(message, query) } -> std::same_as<void>;
};
template <class A>
concept Starts = requires(A& actor, Context& cx) {
  { actor.start(cx) } -> std::same_as<void>;
};
template <class A>
concept HasReceives = requires { typename A::Receives; };
template <class A>
concept HasSends = requires { typename A::Sends; };
template <class A>
concept HasName = requires {
  { A::name } -> std::convertible_to<const char*>;
};

template <class A, class M>
consteval bool check_handler() {
  static_assert(Handles<A, M> || Answers<A, M>,
                "lockstep: a message listed in Receives has no handler; add `void on(const Message&, "
                "lockstep::Context&)`, or `void on(const Message&, lockstep::Query&) const` for a query");
  static_assert(!(Handles<A, M> && Answers<A, M>),
                "lockstep: a message has both a handler and a query handler; a query is not journaled, so give the "
                "query a message of its own");
  return Handles<A, M> != Answers<A, M>;
}

template <class A>
void construct(std::byte* root) {
  ::new (static_cast<void*>(root)) A{};
}

template <class A>
void start(std::byte* root, Context& cx) {
  std::launder(reinterpret_cast<A*>(root))->start(cx);
}

template <class A, class M>
void handle(std::byte* root, const std::byte* payload, Context& cx) {
  std::launder(reinterpret_cast<A*>(root))->on(decode<M>(payload), cx);
}

template <class A, class M>
void answer(const std::byte* root, const std::byte* payload, Query& query) {
  std::launder(reinterpret_cast<const A*>(root))->on(decode<M>(payload), query);
}

template <class A, class M>
consteval Handler handler() {
  Handler made{message_id<M>, M::GetFullyQualifiedName(), verify<M>, nullptr, nullptr};
  if constexpr (check_handler<A, M>()) {
    if constexpr (Handles<A, M>) {
      made.handle = handle<A, M>;
    } else {
      made.answer = answer<A, M>;
    }
  }
  return made;
}

template <class A, class List>
struct HandlerTable;
template <class A, class... Ms>
struct HandlerTable<A, Receives<Ms...>> {
  static constexpr Handler value[Receives<Ms...>::count] = {handler<A, Ms>()...};
};
template <class A>
struct HandlerTable<A, Receives<>> {
  static constexpr std::span<const Handler> value{};
};

template <class List>
struct IdTable;
template <class... Ms>
struct IdTable<Sends<Ms...>> {
  static constexpr std::uint32_t value[Sends<Ms...>::count] = {message_id<Ms>...};
};
template <>
struct IdTable<Sends<>> {
  static constexpr std::span<const std::uint32_t> value{};
};

template <class A>
consteval bool check_actor() {
  static_assert(HasName<A>,
                "lockstep: an actor type has no name; add `static constexpr auto name = \"...\";` and never change it, "
                "since addresses in the journal are made from it");
  static_assert(HasReceives<A>,
                "lockstep: an actor type lists no messages; add `using Receives = lockstep::Receives<...>;`");
  return HasName<A> && HasReceives<A>;
}

template <class A>
consteval std::uint64_t arena_bytes_of() {
  if constexpr (requires { A::arena_bytes; }) {
    static_assert(A::arena_bytes >= 4096 && A::arena_bytes % 4096 == 0 && A::arena_bytes <= std::uint64_t{1} << 36,
                  "lockstep: arena_bytes is 4096 to 64 GiB, a multiple of 4096");
    return A::arena_bytes;
  } else {
    return default_arena_bytes;
  }
}

template <class A>
consteval ActorType make_actor_type() {
  ActorType made;
  if constexpr (check_actor<A>()) {
    made.id = name_id(A::name);
    made.root_bytes = static_cast<std::uint32_t>(sizeof(A));
    made.name = A::name;
    made.arena_bytes = arena_bytes_of<A>();
    if constexpr (check_state<A>()) made.layout = layout_digest<A>();
    made.construct = construct<A>;
    if constexpr (Starts<A>) made.start = start<A>;
    made.handlers = HandlerTable<A, typename A::Receives>::value;
    if constexpr (HasSends<A>) made.sends = IdTable<typename A::Sends>::value;
  }
  return made;
}

}  // namespace detail

template <class A>
inline constexpr ActorType actor_type = detail::make_actor_type<A>();

}  // namespace lockstep
