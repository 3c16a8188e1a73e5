// SPDX-License-Identifier: Apache-2.0
#include "lockstep/context.hpp"

namespace lockstep {

TimerId Context::set_timer(std::int64_t deadline_ns, std::uint32_t message_type, std::span<const std::byte> payload) {
  const TimerId id = ActorTimers(arena_, header_).set(deadline_ns, message_type, payload);
  stage_.add_timer({deadline_ns, static_cast<std::uint64_t>(id)});
  return id;
}

}  // namespace lockstep
