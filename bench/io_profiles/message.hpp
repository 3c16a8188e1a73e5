// SPDX-License-Identifier: Apache-2.0
#pragma once

/// What goes over the wire: messages of 64 bytes, a length and 60 bytes behind it. A reply is its request with the kind
/// changed and `answer` computed from what was asked, so that whoever asked can tell a reply to something else.
///
///     0        4       8        16       24            64
///     +--------+-------+--------+--------+-------------+
///     | length | kind  | number | answer | payload     |
///     +--------+-------+--------+--------+-------------+
///
/// Both ends run on one machine: integers are in its byte order.

#include <array>
#include <cstddef>
#include <cstdint>

namespace lockstep::bench {

enum class MessageKind : std::uint32_t { request = 1, reply = 2 };

struct Message {
  std::uint32_t length;  ///< bytes behind this field: 60
  MessageKind kind;
  std::uint64_t number;  ///< of the request; counts up on each connection, in steps of its own
  std::uint64_t answer;  ///< 0 in a request
  std::array<std::uint64_t, 5> payload;
};
inline constexpr std::size_t message_bytes = 64;
static_assert(sizeof(Message) == message_bytes);
static_assert(offsetof(Message, kind) == 4 && offsetof(Message, number) == 8 && offsetof(Message, answer) == 16 &&
              offsetof(Message, payload) == 24);

/// The finalizer of SplitMix64 (Steele, Lea, Flood 2014).
[[nodiscard]] inline std::uint64_t mix(std::uint64_t value) {
  value = (value ^ (value >> 30)) * 0xbf58476d1ce4e5b9;
  value = (value ^ (value >> 27)) * 0x94d049bb133111eb;
  return value ^ (value >> 31);
}

[[nodiscard]] inline Message request_of(std::uint64_t number) {
  Message message{message_bytes - sizeof(std::uint32_t), MessageKind::request, number, 0, {}};
  for (std::uint64_t& word : message.payload) word = mix(++number);
  return message;
}

/// What the reply to `request` holds as its answer.
[[nodiscard]] inline std::uint64_t answer_to(const Message& request) {
  std::uint64_t answer = request.number;
  for (const std::uint64_t word : request.payload) answer = mix(answer ^ word);
  return answer;
}

[[nodiscard]] inline bool is_well_formed(const Message& message, MessageKind kind) {
  return message.length == message_bytes - sizeof message.length && message.kind == kind;
}

}  // namespace lockstep::bench
