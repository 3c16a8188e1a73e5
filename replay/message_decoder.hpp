// SPDX-License-Identifier: Apache-2.0
#pragma once

/// MessageDecoder: turns a record's payload into JSON through the schema that travels in its journal, so that a journal
/// explains itself to whoever holds neither the program nor its .fbs. For offline tools: a node never interprets a
/// schema it was handed.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/error.hpp"

namespace lockstep {

class MessageDecoder {
 public:
  /// `schema` is what a journal's SCHEMA block holds (Application::schema()): FlatBuffers binary schemas, each behind a
  /// 16-byte header of its length and padded to 16. Each is verified before use.
  [[nodiscard]] static Result<MessageDecoder> from_schema(std::span<const std::byte> schema);
  MessageDecoder(MessageDecoder&&) noexcept;
  MessageDecoder& operator=(MessageDecoder&&) noexcept;
  ~MessageDecoder();

  /// The fully qualified name behind a message type id, or "" when the schema does not have it.
  [[nodiscard]] std::string name(std::uint32_t message_type) const;

  /// All names it has, sorted.
  [[nodiscard]] std::vector<std::string> names() const;

  /// One-line JSON of a message, of strings that are not UTF-8 too (valid_json()). Errors: `incompatible` when the type
  /// is unknown, `corrupt` when the bytes are not that message, `unsupported` when they are but cannot be printed. The
  /// payload must lie on a multiple of 16.
  [[nodiscard]] Result<std::string> json(std::uint32_t message_type, std::span<const std::byte> payload) const;

 private:
  struct State;
  explicit MessageDecoder(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace lockstep
