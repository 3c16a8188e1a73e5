// SPDX-License-Identifier: Apache-2.0
#pragma once

/// NativeCodec: the frames of lockstep/wire.hpp, from bytes to messages and back. It trusts nothing: a frame that is
/// not of the protocol gets an error and ends the connection, since what follows it cannot be told; a message that is
/// refused gets an error and the connection goes on.
///
/// Belongs to one perimeter and its thread. It keeps nothing between calls: what a connection needs is in it.

#include <cstdint>
#include <span>

#include "lockstep/wire.hpp"
#include "runtime/agents/codec.hpp"
#include "runtime/agents/connection.hpp"
#include "runtime/agents/frames.hpp"
#include "runtime/agents/intake.hpp"
#include "runtime/agents/outbox.hpp"

namespace lockstep {

class NativeCodec {
 public:
  /// Where secrets of sessions come from: nobody may be able to tell them in advance.
  using DrawSecret = std::uint64_t (*)();

  NativeCodec(Intake& intake, Outbox& outbox, PerimeterMetrics& metrics, const CodecLimits& limits,
              std::uint64_t schema_id, DrawSecret draw_secret)
      : intake_(intake),
        outbox_(outbox),
        metrics_(metrics),
        limits_(limits),
        schema_id_(schema_id),
        draw_secret_(draw_secret) {}

  /// Takes whole frames from the front of `bytes`.
  [[nodiscard]] Consumed consume(Connection& connection, std::span<const std::byte> bytes, std::int64_t arrival_ns);
  /// Writes the answer to one of the connection's frames; whether the connection ends with it.
  [[nodiscard]] bool answer(Connection& connection, const ReplyFrame& reply, std::span<const std::byte> payload);
  /// Tells the client that the node closes the connection.
  void goodbye(Connection& connection);

 private:
  using Then = Consumed::Then;

  [[nodiscard]] Then take(Connection& connection, const wire::FrameHeader& header, std::span<const std::byte> payload,
                          std::int64_t arrival_ns);
  [[nodiscard]] Then take_hello(Connection& connection, std::span<const std::byte> payload, std::int64_t arrival_ns);
  [[nodiscard]] Then take_goodbye(Connection& connection, std::int64_t arrival_ns);
  [[nodiscard]] bool take_event(Connection& connection, const ReplyFrame& reply);
  void greet(Connection& connection);
  [[nodiscard]] Then take_message(Connection& connection, const wire::FrameHeader& header,
                                  std::span<const std::byte> payload, std::int64_t arrival_ns);
  [[nodiscard]] bool is_sound(const Connection& connection, const wire::FrameHeader& header) const;
  [[nodiscard]] std::uint32_t max_length(wire::FrameKind kind) const;
  Then end(Connection& connection, std::uint64_t request, wire::WireError error, std::uint32_t detail = 0);
  void write_error(Connection& connection, std::uint64_t request, wire::WireError error, std::uint32_t detail);

  Intake& intake_;
  Outbox& outbox_;
  PerimeterMetrics& metrics_;
  CodecLimits limits_;
  std::uint64_t schema_id_;
  DrawSecret draw_secret_;
};

}  // namespace lockstep
