// SPDX-License-Identifier: Apache-2.0
#pragma once

/// Record: one stamped message, as it lies in a batch, in the journal and in front of an actor; the same bytes in all
/// three places. A record is its 64-byte header, `length` bytes of payload, and zeros up to the next multiple of 16, so
/// that a FlatBuffer in it is aligned and the next header is too.
///
///      0        4      5      6        8            12            16       24        32        40            44
///     +--------+------+-------+--------+------------+-------------+--------+---------+---------+-------------+
///     | length | kind | flags | zero   | actor type | message type| key    | session | request | ack distance|
///     +--------+------+-------+--------+------------+-------------+--------+---------+---------+-------------+
///     | check  | seq            | timestamp         |  payload, padded with zeros to 16 ...
///     +--------+----------------+-------------------+
///      44       48               56                 64
///
/// `check` covers everything but seq and timestamp, from the perimeter that framed the message to the actor that runs
/// it; seq and timestamp are checked by continuity and by the batch's digest. Little-endian. Any thread; pure
/// functions.

#include <cstddef>
#include <cstdint>
#include <span>

#include "base/digest.hpp"

namespace lockstep {

inline constexpr std::size_t record_alignment = 16;

enum class RecordKind : std::uint8_t {
  message = 1,        ///< a client's message to an actor
  genesis = 2,        ///< the configuration that state depends on; the first record of every history
  session_open = 3,   ///< stamped when a client's session begins
  session_close = 4,  ///< stamped when it ends or expires
  skip = 5,           ///< an operator's order to pass over a sequence number
};

struct RecordHeader {
  std::uint32_t length = 0;  ///< payload bytes; may be 0
  RecordKind kind = RecordKind::message;
  std::uint8_t flags = 0;  ///< none defined; must be 0
  std::uint16_t zero = 0;
  std::uint32_t actor_type = 0;    ///< hash of the actor type's name
  std::uint32_t message_type = 0;  ///< hash of the message's fully qualified name
  std::uint64_t key = 0;           ///< the actor's key within its type
  std::uint64_t session = 0;       ///< who asked; 0 is the node itself
  std::uint64_t request = 0;       ///< the session's own number for this request
  std::uint32_t ack_distance = 0;  ///< request - ack_below: how far back answers are still wanted
  std::uint32_t check = 0;         ///< record_check() of header and payload
  std::uint64_t seq = 0;           ///< 1, 2, 3, … without gaps over the whole history
  std::int64_t timestamp_ns = 0;   ///< stamped Unix time; never runs back along seq
};
static_assert(sizeof(RecordHeader) == 64 && alignof(RecordHeader) == 8);
static_assert(offsetof(RecordHeader, kind) == 4 && offsetof(RecordHeader, actor_type) == 8);
static_assert(offsetof(RecordHeader, message_type) == 12 && offsetof(RecordHeader, key) == 16);
static_assert(offsetof(RecordHeader, session) == 24 && offsetof(RecordHeader, request) == 32);
static_assert(offsetof(RecordHeader, ack_distance) == 40 && offsetof(RecordHeader, check) == 44);
static_assert(offsetof(RecordHeader, seq) == 48 && offsetof(RecordHeader, timestamp_ns) == 56);

/// Bytes a record of `payload_bytes` takes in a batch.
[[nodiscard]] constexpr std::size_t record_bytes(std::size_t payload_bytes) {
  return sizeof(RecordHeader) + ((payload_bytes + record_alignment - 1) & ~(record_alignment - 1));
}

/// Low half of XXH3-64(payload, seed = XXH3-64(header bytes [0, 44))).
[[nodiscard]] inline std::uint32_t record_check(const RecordHeader& header, std::span<const std::byte> payload) {
  const auto covered = std::as_bytes(std::span(&header, 1)).first<offsetof(RecordHeader, check)>();
  return static_cast<std::uint32_t>(xxh3_64(payload, xxh3_64(covered)));
}

}  // namespace lockstep
