// SPDX-License-Identifier: Apache-2.0
#pragma once

/// Timers of one actor, in its arena: an array of slots, free ones linked, each with its message's bytes in a block of
/// its own. Set, cancel and take cost O(1). A TimerId is a serial number and the slot it is in, so ids grow in the
/// order in which timers are made, and an id whose timer fired or was cancelled finds nothing.
///
/// Called within a step of the executor that owns the actor; every write goes through the arena's barrier.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "lockstep/actor_header.hpp"

namespace lockstep {

/// Names a timer of the actor that made it; may be kept in its state. 0 is none.
enum class TimerId : std::uint64_t { none = 0 };

struct TimerSlot {
  TimerId id = TimerId::none;  ///< none: the slot is free
  std::int64_t deadline_ns = 0;
  std::uint32_t message_type = 0;
  std::uint32_t length = 0;  ///< payload bytes
  Link payload;
  std::uint32_t next_free = 0;  ///< of a free slot: 1 + index of the next
};
static_assert(sizeof(TimerSlot) == 32);

/// What a due timer delivers; the payload is valid until the actor's image is next written.
struct DueTimer {
  std::uint32_t message_type = 0;
  std::span<const std::byte> payload;
};

class ActorTimers {
 public:
  ActorTimers(Arena& arena, ActorHeader& header) : arena_(arena), header_(header) {}

  /// Throws TrapError{arena_exhausted} or {write_budget}.
  TimerId set(std::int64_t deadline_ns, std::uint32_t message_type, std::span<const std::byte> payload);
  /// Whether there was such a timer.
  bool cancel(TimerId id);
  /// What the timer holds, or nothing when it is no more.
  [[nodiscard]] std::optional<DueTimer> find(TimerId id) const;

  /// Calls visit(deadline_ns, id) for each timer, in slot order: to build the executor's index of a restored image.
  template <class Visit>
  void for_each(Visit&& visit) const {
    for (std::uint32_t i = 0; i < header_.timer_capacity; ++i) {
      if (slots()[i].id != TimerId::none) visit(slots()[i].deadline_ns, slots()[i].id);
    }
  }

 private:
  static constexpr unsigned slot_bits = 24;

  [[nodiscard]] static std::uint32_t slot_of(TimerId id) {
    return static_cast<std::uint32_t>(static_cast<std::uint64_t>(id) & ((1U << slot_bits) - 1));
  }
  [[nodiscard]] TimerSlot* slots() const { return reinterpret_cast<TimerSlot*>(arena_.at(header_.timer_slots)); }
  [[nodiscard]] bool holds(TimerId id) const;
  void grow();

  Arena& arena_;
  ActorHeader& header_;
};

}  // namespace lockstep
