// SPDX-License-Identifier: Apache-2.0
#pragma once

/// Trap: how a handler ends when it may not go on. Its writes and effects are undone, and the outcome becomes part of
/// the history, so every kind below depends on logical counters only, never on what the host has left.

#include <cstdint>
#include <string_view>

namespace lockstep {

enum class TrapKind : std::uint16_t {
  none = 0,
  exception = 1,         ///< the handler threw
  arena_exhausted = 2,   ///< the actor's arena is at its declared capacity
  too_many_effects = 3,  ///< more sends, replies or timers than one handler may make
  effect_bytes = 4,      ///< more bytes of effects than one handler may make
  shard_budget = 5,      ///< the shard's effects of one batch are used up
  write_budget = 6,      ///< more old bytes to keep for undo than one handler may overwrite
  no_handler = 7,        ///< no such actor type, or it does not receive this message
  undeclared_send = 8,   ///< the actor sends a message its `Sends` does not list
  no_actor = 9,          ///< a query to an actor that does not exist; never in the history
  skipped = 10,          ///< an operator had the message passed over
};

/// What became of the handler, for people.
[[nodiscard]] constexpr std::string_view trap_text(TrapKind kind) {
  switch (kind) {
    case TrapKind::none:
      return "no trap";
    case TrapKind::exception:
      return "it threw an exception";
    case TrapKind::arena_exhausted:
      return "its arena is exhausted";
    case TrapKind::too_many_effects:
      return "it made too many effects";
    case TrapKind::effect_bytes:
      return "its effects are too large";
    case TrapKind::shard_budget:
      return "its shard's effects of this batch are used up";
    case TrapKind::write_budget:
      return "it overwrote more than can be kept for undo";
    case TrapKind::no_handler:
      return "no actor handles the message";
    case TrapKind::undeclared_send:
      return "it sent a message that its Sends does not list";
    case TrapKind::no_actor:
      return "there is no such actor";
    case TrapKind::skipped:
      return "an operator had the message passed over";
  }
  return "an unknown trap";
}

/// What the SDK throws to trap; a handler may not catch it and go on (the executor sees that it was raised).
struct TrapError {
  TrapKind kind;
};

}  // namespace lockstep
