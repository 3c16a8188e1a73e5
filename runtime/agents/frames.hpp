// SPDX-License-Identifier: Apache-2.0
#pragma once

/// Frames that perimeters and executors pass each other over ByteRings: answers one way, queries the other. A frame is
/// its header and `length` bytes of message behind it; ring payloads start on a multiple of 16 and both headers are
/// multiples of 16, so the message is aligned. They never leave the process: no version, no check.
///
///     executor ── ReplyFrame ──▶ perimeter of the route          perimeter ── QueryFrame ──▶ owner of the actor's
///     shard
///
/// There are two kinds of sessions. A *durable* one is opened by a record and numbered by that record's seq; it
/// outlives its connections and the node, and its requests run once. An *ephemeral* one has the top bit set, is its
/// connection, and ends with it: RESP, queries, tests. The same numbers name connections: a *route* is where answers
/// go.

#include <cstddef>
#include <cstdint>

namespace lockstep {

/// How a request, a query or a session's record ended.
enum class Outcome : std::uint8_t {
  reply = 1,     ///< a message of message_type
  trapped = 2,   ///< the handler trapped; detail is the TrapKind
  no_reply = 3,  ///< it ran and has nothing to say
  refused = 4,   ///< it did not run, or its answer was not kept; detail is the wire::WireError
  session = 5,   ///< `request` is a session; detail is the SessionEvent
};

/// What became of a session, as its connection is told.
enum class SessionEvent : std::uint8_t {
  opened = 1,
  resumed = 2,
  unknown = 3,  ///< none to resume: it expired, or the secret is another
  refused = 4,  ///< too many sessions
  closed = 5,   ///< as its client asked
  moved = 6,    ///< it was resumed over another connection
  expired = 7,
};

struct ReplyFrame {
  std::uint64_t route = 0;  ///< the connection it goes to; perimeter_of(route) has it
  std::uint64_t request = 0;
  std::uint32_t message_type = 0;
  std::uint32_t length = 0;
  Outcome outcome = Outcome::reply;
  std::uint8_t zero = 0;
  std::uint16_t answers = 1;  ///< how many frames that the connection sent are answered by this
  std::uint32_t detail = 0;
};
static_assert(sizeof(ReplyFrame) == 32 && offsetof(ReplyFrame, outcome) == 24 && offsetof(ReplyFrame, answers) == 26);

/// Answered by a ReplyFrame with the same route and request.
struct QueryFrame {
  std::uint64_t route = 0;
  std::uint64_t request = 0;
  std::uint64_t key = 0;
  std::uint32_t actor_type = 0;
  std::uint32_t message_type = 0;
  std::uint32_t length = 0;
  std::uint32_t zero[3] = {};
};
static_assert(sizeof(QueryFrame) == 48 && offsetof(QueryFrame, length) == 32);

inline constexpr std::uint64_t ephemeral_bit = std::uint64_t{1} << 63;

/// Whether the session's requests are remembered; 0 is the node itself.
[[nodiscard]] constexpr bool is_durable(std::uint64_t session) {
  return session != 0 && (session & ephemeral_bit) == 0;
}

/// The number of an ephemeral session, and of a connection: below the top bit the node's incarnation, in bits 32…39 the
/// perimeter that holds the connection, then a counter.
[[nodiscard]] constexpr std::uint64_t session_number(std::uint64_t incarnation, std::uint8_t perimeter,
                                                     std::uint32_t counter) {
  return ephemeral_bit | incarnation << 40 | std::uint64_t{perimeter} << 32 | counter;
}
[[nodiscard]] constexpr std::uint8_t perimeter_of(std::uint64_t route) {
  return static_cast<std::uint8_t>(route >> 32);
}

}  // namespace lockstep
