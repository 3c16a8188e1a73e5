// SPDX-License-Identifier: Apache-2.0
#pragma once

/// Wire: what a client and a node say to each other over TCP. Every frame is a 32-byte little-endian header and
/// `length` bytes behind it. A connection starts with hello, answered by hello_ok or by an error and the end. After
/// that requests may be sent without waiting; replies carry their request's number and come in any order.
///
/// A session outlives its connections: a hello that names it and its secret goes on with it, on this node or on one
/// that was started again, and all that the session sends is answered there. A request runs once, however often it is
/// sent: send it again under its number, with the same bytes, when its answer did not come. A number is used for one
/// request only, and never again once it lies below what a request acknowledged (its number less its ack distance). A
/// session ends by goodbye, or when it sends no request for session_expiry_ms. A client that only asks queries needs no
/// session, and then nothing of it is written to the history.
///
///      0        4      5       6              8         16             20           24    32
///     +--------+------+-------+--------------+---------+--------------+------------+-----+---------
///     | length | kind | flags | ack distance | request | message type | actor type | key | payload
///     +--------+------+-------+--------------+---------+--------------+------------+-----+---------
///
///     kind      from    payload                  request  types, key
///     hello     client  Hello                    0        0
///     hello_ok  node    HelloOk                  0        0
///     request   client  message (FlatBuffers)    >= 1     of the message and of the actor it is for
///     query     client  message (FlatBuffers)    >= 1     the same; answered from committed state, never journaled
///     reply     node    message (FlatBuffers)    its      message type of the reply
///     error     node    ErrorBody, text          its or 0 0
///     goodbye   both    none                     0        0; client: answer what is open, then end the session; node:
///                                                        it closes the connection, the session stays
///
/// Hello, HelloOk and ErrorBody may grow at their ends: a reader takes what it knows and passes over the rest. A
/// payload is copied to a multiple of 16 before anyone reads it, so frames need no padding.
///
/// Layout only; any thread.

#include <bit>
#include <cstddef>
#include <cstdint>

namespace lockstep::wire {

static_assert(std::endian::native == std::endian::little, "frames are read as they lie");

enum class FrameKind : std::uint8_t {
  hello = 1,
  hello_ok = 2,
  request = 3,
  query = 4,
  reply = 5,
  error = 6,
  goodbye = 7,
};

struct FrameHeader {
  std::uint32_t length = 0;  ///< bytes behind the header
  FrameKind kind{};
  std::uint8_t flags = 0;  ///< none defined yet; must be 0
  /// Of a request: how far below its own number answers may still be wanted, so that what lies below can be forgotten;
  /// 0 says that all earlier ones are done with. Must be 0 in every other kind.
  std::uint16_t ack_distance = 0;
  std::uint64_t request = 0;  ///< chosen by the client, growing; one session never uses a number twice
  std::uint32_t message_type = 0;
  std::uint32_t actor_type = 0;
  std::uint64_t key = 0;
};
static_assert(sizeof(FrameHeader) == 32 && alignof(FrameHeader) == 8);
static_assert(offsetof(FrameHeader, kind) == 4 && offsetof(FrameHeader, flags) == 5);
static_assert(offsetof(FrameHeader, ack_distance) == 6 && offsetof(FrameHeader, request) == 8);
static_assert(offsetof(FrameHeader, message_type) == 16 && offsetof(FrameHeader, actor_type) == 20);
static_assert(offsetof(FrameHeader, key) == 24);

inline constexpr std::uint64_t protocol_magic = 0x50455453'4b434f4c;  ///< the bytes "LOCKSTEP"
inline constexpr std::uint16_t protocol_version = 1;

/// What either side can do beyond this version's core; both send what they have and use what both have.
enum Capability : std::uint32_t {
  capability_queries = 1U << 0,
  /// In a hello: a session is to begin, or to go on. Without it only queries may be sent, and a second hello may ask.
  capability_sessions = 1U << 1,
};

/// The client's first frame. A session to resume is named by its number and the secret its HelloOk gave; 0 asks for a
/// new one, if capability_sessions is set.
struct Hello {
  std::uint64_t magic = wire::protocol_magic;
  std::uint16_t version_min = wire::protocol_version;
  std::uint16_t version_max = wire::protocol_version;
  std::uint32_t capabilities = 0;
  std::uint64_t resume_session = 0;
  std::uint64_t resume_secret = 0;
  std::uint64_t schema_id = 0;  ///< XXH3-64 of the client's .bfbs; 0 when it does not know
};
static_assert(sizeof(Hello) == 40);
static_assert(offsetof(Hello, version_min) == 8 && offsetof(Hello, capabilities) == 12);
static_assert(offsetof(Hello, resume_session) == 16 && offsetof(Hello, schema_id) == 32);

struct HelloOk {
  std::uint64_t magic = wire::protocol_magic;
  std::uint16_t version = wire::protocol_version;  ///< the one that is spoken from here on
  std::uint16_t zero = 0;
  std::uint32_t capabilities = 0;
  std::uint64_t session = 0;         ///< 0: none; then only queries are answered
  std::uint64_t session_secret = 0;  ///< to resume it with
  std::uint64_t schema_id = 0;       ///< of the application the node runs
  std::uint32_t max_payload_bytes = 0;
  std::uint32_t max_in_flight = 0;      ///< requests without an answer, after which the node stops reading
  std::uint32_t reply_window = 0;       ///< ack distances must be below
  std::uint32_t session_expiry_ms = 0;  ///< without a request, after which a session is closed
};
static_assert(sizeof(HelloOk) == 56);
static_assert(offsetof(HelloOk, version) == 8 && offsetof(HelloOk, capabilities) == 12);
static_assert(offsetof(HelloOk, session) == 16 && offsetof(HelloOk, schema_id) == 32);
static_assert(offsetof(HelloOk, max_payload_bytes) == 40 && offsetof(HelloOk, max_in_flight) == 44);
static_assert(offsetof(HelloOk, reply_window) == 48 && offsetof(HelloOk, session_expiry_ms) == 52);

enum class WireError : std::uint32_t {
  malformed = 1,            ///< not a frame of this protocol; the connection ends
  version = 2,              ///< no version in common; the connection ends
  unknown_type = 3,         ///< no such actor type, or it does not receive this message (detail: 0)
  too_large = 4,            ///< the payload exceeds max_payload_bytes (detail: that limit); the connection ends
  verification_failed = 5,  ///< the payload is not a valid message of its type
  overload = 6,             ///< a limit of the node is reached; try again later
  unsupported = 7,          ///< the node does not do this
  trapped = 8,              ///< the handler trapped and was undone (detail: its TrapKind)
  stopping = 9,             ///< the node is about to stop
  halted = 10,              ///< the node has halted before a message that crashes it
  window = 11,              ///< the ack distance is not below HelloOk's reply_window; it did not run
  stale = 12,               ///< the session has said that it wants no answer to this number any more; it did not run
  no_session = 13,          ///< no such session, or another secret: it expired or was closed; the connection ends
  answer_lost = 14,         ///< the request ran before, and its answer was too much to keep
  session_moved = 15,       ///< the session was resumed over another connection; this one ends
};
inline constexpr std::size_t wire_error_count = 16;

/// Start of an error's payload; a readable text follows, UTF-8, to the frame's end.
struct ErrorBody {
  WireError code{};
  std::uint32_t detail = 0;
};
static_assert(sizeof(ErrorBody) == 8);

}  // namespace lockstep::wire
