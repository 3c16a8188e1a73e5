// SPDX-License-Identifier: Apache-2.0
#pragma once

/// Wire: what a client and a node say to each other over TCP. Every frame is a 32-byte little-endian header and
/// `length` bytes behind it. A connection starts with hello, answered by hello_ok or by an error and the end. After
/// that requests may be sent without waiting; replies carry their request's number and come in any order.
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
///     goodbye   both    none                     0        0; client: answer what is open, then close; node: it closes
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
};

/// The client's first frame. A session to resume is named by its number and the secret its HelloOk gave; 0 asks for a
/// new one.
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
  std::uint64_t session = 0;
  std::uint64_t session_secret = 0;  ///< 0 as long as sessions end with their connection
  std::uint64_t schema_id = 0;       ///< of the application the node runs
  std::uint32_t max_payload_bytes = 0;
  std::uint32_t max_in_flight = 0;  ///< requests without an answer, after which the node stops reading
};
static_assert(sizeof(HelloOk) == 48);
static_assert(offsetof(HelloOk, version) == 8 && offsetof(HelloOk, capabilities) == 12);
static_assert(offsetof(HelloOk, session) == 16 && offsetof(HelloOk, schema_id) == 32);
static_assert(offsetof(HelloOk, max_payload_bytes) == 40 && offsetof(HelloOk, max_in_flight) == 44);

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
};
inline constexpr std::size_t wire_error_count = 11;

/// Start of an error's payload; a readable text follows, UTF-8, to the frame's end.
struct ErrorBody {
  WireError code{};
  std::uint32_t detail = 0;
};
static_assert(sizeof(ErrorBody) == 8);

}  // namespace lockstep::wire
