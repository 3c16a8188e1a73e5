// SPDX-License-Identifier: Apache-2.0
#pragma once

/// RespCodec: RESP2 commands in, messages of an application out, and the answers back in the order of the commands. The
/// mapping is the application's (lockstep/resp.hpp); commands about the connection are answered here. What is refused
/// or trapped is an error reply; bytes that are not of the protocol get one and end the connection once the commands
/// before them are answered.
///
/// Belongs to one perimeter and its thread.

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "lockstep/resp.hpp"
#include "runtime/agents/codec.hpp"
#include "runtime/agents/connection.hpp"
#include "runtime/agents/frames.hpp"
#include "runtime/agents/intake.hpp"
#include "runtime/agents/outbox.hpp"
#include "runtime/agents/resp_parser.hpp"
#include "runtime/agents/resp_session.hpp"

namespace lockstep {

class RespCodec {
 public:
  RespCodec(Intake& intake, Outbox& outbox, PerimeterMetrics& metrics, const CodecLimits& limits,
            const resp::Application& application);

  /// Takes whole commands from the front of `bytes`.
  [[nodiscard]] Consumed consume(Connection& connection, std::span<const std::byte> bytes, const Now& now);
  /// Writes, or keeps in its place, the answer to one of the connection's commands. False when it has been answered
  /// before: the first reply is the one that counts.
  [[nodiscard]] bool answer(Connection& connection, const ReplyFrame& reply, const std::byte* payload);

 private:
  using Then = Consumed::Then;

  [[nodiscard]] Then run(Connection& connection, const Now& now);
  [[nodiscard]] Then run_translated(Connection& connection, resp::Command& command, const Now& now);
  [[nodiscard]] Then ask(Connection& connection, const resp::Command& command, const Now& now);
  void answer_now(Connection& connection, std::string_view text);
  void render(const RespSession::Pending& place, const ReplyFrame& reply, const std::byte* payload,
              std::string& output) const;
  [[nodiscard]] std::string_view capital_name(std::string_view name);
  [[nodiscard]] std::string refusal_reply(wire::WireError error);

  Intake& intake_;
  Outbox& outbox_;
  PerimeterMetrics& metrics_;
  CodecLimits limits_;
  resp::Application application_;
  RespParser parser_;
  MessageBuilder builder_;
  std::string name_;    ///< of the command in hand, in capitals
  std::string answer_;  ///< to the command in hand, when it is answered on the spot
  std::int64_t started_ns_ = -1;
};

}  // namespace lockstep
