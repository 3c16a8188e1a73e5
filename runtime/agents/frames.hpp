// SPDX-License-Identifier: Apache-2.0
#pragma once

/// Frames that perimeters and executors pass each other over ByteRings: answers one way, queries the other. A frame is
/// its header and `length` bytes of message behind it; ring payloads start on a multiple of 16 and both headers are
/// multiples of 16, so the message is aligned. They never leave the process: no version, no check.
///
///     executor ── ReplyFrame ──▶ perimeter of the session        perimeter ── QueryFrame ──▶ owner of the actor's
///     shard

#include <cstddef>
#include <cstdint>

namespace lockstep {

/// How a request or a query ended. Each ends exactly once.
enum class Outcome : std::uint8_t {
  reply = 1,     ///< a message of message_type
  trapped = 2,   ///< the handler trapped; detail is the TrapKind
  no_reply = 3,  ///< it ran and has nothing to say
};

struct ReplyFrame {
  std::uint64_t session = 0;  ///< of the request; perimeter_of(session) is whom it goes to
  std::uint64_t request = 0;
  std::uint32_t message_type = 0;
  std::uint32_t length = 0;
  Outcome outcome = Outcome::reply;
  std::uint8_t zero[3] = {};
  std::uint32_t detail = 0;
};
static_assert(sizeof(ReplyFrame) == 32 && offsetof(ReplyFrame, outcome) == 24);

/// Answered by a ReplyFrame with the same session and request.
struct QueryFrame {
  std::uint64_t session = 0;
  std::uint64_t request = 0;
  std::uint64_t key = 0;
  std::uint32_t actor_type = 0;
  std::uint32_t message_type = 0;
  std::uint32_t length = 0;
  std::uint32_t zero[3] = {};
};
static_assert(sizeof(QueryFrame) == 48 && offsetof(QueryFrame, length) == 32);

/// A session's number: the node's incarnation above bit 40, the perimeter that holds its connection in bits 32…39, a
/// counter below.
[[nodiscard]] constexpr std::uint64_t session_number(std::uint64_t incarnation, std::uint8_t perimeter,
                                                     std::uint32_t counter) {
  return incarnation << 40 | std::uint64_t{perimeter} << 32 | counter;
}
[[nodiscard]] constexpr std::uint8_t perimeter_of(std::uint64_t session) {
  return static_cast<std::uint8_t>(session >> 32);
}

}  // namespace lockstep
