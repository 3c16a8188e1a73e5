// SPDX-License-Identifier: Apache-2.0
#include "runtime/agents/codec.hpp"

#include "base/assert.hpp"

namespace lockstep {

wire::WireError refusal(Admission admission) {
  switch (admission) {
    case Admission::unknown_type:
      return wire::WireError::unknown_type;
    case Admission::too_large:
      return wire::WireError::too_large;
    case Admission::verification_failed:
      return wire::WireError::verification_failed;
    case Admission::halted:
      return wire::WireError::halted;
    case Admission::accepted:
    case Admission::no_room:
      break;
  }
  LOCKSTEP_ASSERT(false, "an accepted message has no refusal");
  return {};
}

std::string_view refusal_text(wire::WireError error) {
  switch (error) {
    case wire::WireError::malformed:
      return "not a frame of this protocol";
    case wire::WireError::version:
      return "no protocol version in common; this node speaks version 1";
    case wire::WireError::unknown_type:
      return "no actor type of this node receives this message in this way";
    case wire::WireError::too_large:
      return "the message is larger than the node accepts";
    case wire::WireError::verification_failed:
      return "the payload is not a valid message of its type";
    case wire::WireError::overload:
      return "a limit of the node is reached; try again later";
    case wire::WireError::unsupported:
      return "the node does not support this";
    case wire::WireError::trapped:
      return "the handler failed and its writes were undone";
    case wire::WireError::stopping:
      return "the node is about to stop";
    case wire::WireError::halted:
      return "the node has halted before a message that crashes it, and waits for its operator";
    case wire::WireError::window:
      return "the request acknowledges too little: its ack distance is not within the reply window";
    case wire::WireError::stale:
      return "the session has said that it is done with this number";
    case wire::WireError::no_session:
      return "there is no such session; it expired, or was closed";
    case wire::WireError::answer_lost:
      return "the request ran before, and its answer was too much to keep";
    case wire::WireError::session_moved:
      return "the session was resumed over another connection";
  }
  return "unknown error";
}

std::string_view trap_name(TrapKind kind) {
  switch (kind) {
    case TrapKind::none:
      return "none";
    case TrapKind::exception:
      return "exception";
    case TrapKind::arena_exhausted:
      return "arena_exhausted";
    case TrapKind::too_many_effects:
      return "too_many_effects";
    case TrapKind::effect_bytes:
      return "effect_bytes";
    case TrapKind::shard_budget:
      return "shard_budget";
    case TrapKind::write_budget:
      return "write_budget";
    case TrapKind::no_handler:
      return "no_handler";
    case TrapKind::undeclared_send:
      return "undeclared_send";
    case TrapKind::no_actor:
      return "no_actor";
    case TrapKind::skipped:
      return "skipped";
  }
  return "unknown";
}

}  // namespace lockstep
