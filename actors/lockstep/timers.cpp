// SPDX-License-Identifier: Apache-2.0
#include "lockstep/timers.hpp"

#include <cstring>

namespace lockstep {

TimerId ActorTimers::set(std::int64_t deadline_ns, std::uint32_t message_type, std::span<const std::byte> payload) {
  arena_.before_write(&header_, sizeof header_);
  if (header_.free_timer_slot == 0) grow();
  const std::uint32_t index = header_.free_timer_slot - 1;
  const Link bytes = payload.empty() ? Link{} : arena_.allocate(static_cast<std::uint32_t>(payload.size()));
  if (!payload.empty()) {
    arena_.before_write(arena_.at(bytes), payload.size());
    std::memcpy(arena_.at(bytes), payload.data(), payload.size());
  }
  TimerSlot& slot = slots()[index];
  arena_.before_write(&slot, sizeof slot);
  header_.free_timer_slot = slot.next_free;
  header_.timer_count += 1;
  header_.timers_made += 1;
  const TimerId id{header_.timers_made << slot_bits | index};
  slot = {id, deadline_ns, message_type, static_cast<std::uint32_t>(payload.size()), bytes, 0};
  return id;
}

bool ActorTimers::cancel(TimerId id) {
  if (!holds(id)) return false;
  const std::uint32_t index = slot_of(id);
  TimerSlot& slot = slots()[index];
  arena_.before_write(&header_, sizeof header_);
  arena_.before_write(&slot, sizeof slot);
  arena_.free(slot.payload, slot.length);
  slot = {};
  slot.next_free = header_.free_timer_slot;
  header_.free_timer_slot = index + 1;
  header_.timer_count -= 1;
  return true;
}

std::optional<DueTimer> ActorTimers::find(TimerId id) const {
  if (!holds(id)) return std::nullopt;
  const TimerSlot& slot = slots()[slot_of(id)];
  if (slot.length == 0) return DueTimer{slot.message_type, {}};
  return DueTimer{slot.message_type, {arena_.at(slot.payload), slot.length}};
}

bool ActorTimers::holds(TimerId id) const {
  return id != TimerId::none && slot_of(id) < header_.timer_capacity && slots()[slot_of(id)].id == id;
}

void ActorTimers::grow() {
  constexpr std::uint32_t first_capacity = 4;
  const std::uint32_t old_capacity = header_.timer_capacity;
  const std::uint32_t capacity = old_capacity == 0 ? first_capacity : 2 * old_capacity;
  if (capacity > 1U << slot_bits) throw TrapError{TrapKind::arena_exhausted};
  const Link link = arena_.allocate(capacity * static_cast<std::uint32_t>(sizeof(TimerSlot)));
  auto* const fresh = reinterpret_cast<TimerSlot*>(arena_.at(link));
  arena_.before_write(fresh, capacity * sizeof(TimerSlot));
  if (old_capacity != 0) {
    std::memcpy(fresh, slots(), old_capacity * sizeof(TimerSlot));
    arena_.free(header_.timer_slots, old_capacity * static_cast<std::uint32_t>(sizeof(TimerSlot)));
  }
  // Lowest index first, so that the free list hands slots out in order.
  for (std::uint32_t i = capacity; i > old_capacity; --i) {
    fresh[i - 1].next_free = header_.free_timer_slot;
    header_.free_timer_slot = i;
  }
  header_.timer_slots = link;
  header_.timer_capacity = capacity;
}

}  // namespace lockstep
