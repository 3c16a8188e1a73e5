// SPDX-License-Identifier: Apache-2.0
#pragma once

/// ActorHeader: what the framework keeps of an actor in the actor's own image, in front of its root object: who it is,
/// its clock, its counters, its timers. So it is hashed, snapshotted and undone with the state. Only
/// code that runs in a step of the actor's executor writes it.
///
///     image:  ArenaHeader | ActorHeader 64 | root object | blocks ...
///                          ^ Arena::first_block

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "lockstep/address.hpp"
#include "lockstep/arena.hpp"

namespace lockstep {

struct ActorHeader {
  Address self = {};
  std::int64_t last_now_ns = 0;   ///< now() of the last handler that was not undone
  std::uint64_t invocations = 0;  ///< handlers that were not undone; keys random()
  std::uint64_t sends = 0;        ///< messages to actors, and replies; orders what one sender sends
  std::uint64_t timers_made = 0;  ///< the next timer's serial number
  Link timer_slots = {};          ///< array of TimerSlot
  std::uint32_t timer_capacity = 0;
  std::uint32_t free_timer_slot = 0;  ///< 1 + index of the first free slot; 0 when all are taken
  std::uint32_t timer_count = 0;
};
static_assert(sizeof(ActorHeader) == 64 && std::is_trivially_copyable_v<ActorHeader>);
static_assert(offsetof(ActorHeader, last_now_ns) == 16 && offsetof(ActorHeader, timer_slots) == 48);

}  // namespace lockstep
