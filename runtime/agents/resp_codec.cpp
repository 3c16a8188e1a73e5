// SPDX-License-Identifier: Apache-2.0
#include "runtime/agents/resp_codec.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <memory>

#include "base/assert.hpp"
#include "lockstep/trap.hpp"
#include "runtime/agents/resp_commands.hpp"

namespace lockstep {
namespace {

/// A command is its message and RESP's own bytes around each argument.
RespLimits limits_for(std::size_t max_payload_bytes) {
  RespLimits limits;
  limits.max_command_bytes = 2 * max_payload_bytes + limits.max_inline_bytes;
  return limits;
}

}  // namespace

RespCodec::RespCodec(Intake& intake, Outbox& outbox, PerimeterMetrics& metrics, const CodecLimits& limits,
                     const resp::Application& application)
    : intake_(intake),
      outbox_(outbox),
      metrics_(metrics),
      limits_(limits),
      application_(application),
      parser_(limits_for(intake.max_payload_bytes())),
      builder_(intake.max_payload_bytes()) {
  LOCKSTEP_ASSERT(application.translate != nullptr && application.render != nullptr,
                  "a RESP application translates and renders");
}

Consumed RespCodec::consume(Connection& connection, std::span<const std::byte> bytes, const Now& now) {
  if (connection.resp == nullptr) connection.resp = std::make_unique<RespSession>();
  if (started_ns_ < 0) started_ns_ = now.steady_ns;
  RespSession& session = *connection.resp;
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  Consumed consumed;
  while (consumed.bytes != text.size()) {
    if (session.count >= limits_.max_in_flight) {
      consumed.then = Then::wait_answers;
      return consumed;
    }
    const RespParsed parsed = parser_.parse(text.substr(consumed.bytes), session.scan);
    if (parsed.status == RespParsed::Status::incomplete) return consumed;
    if (parsed.status == RespParsed::Status::broken) {
      metrics_.errors_total[static_cast<std::size_t>(wire::WireError::malformed)].add();
      answer_now(connection, fmt::format("-ERR {}\r\n", parsed.complaint));
      consumed.then = Then::drain;
      return consumed;
    }
    if (!parser_.arguments().empty()) consumed.then = run(connection, now);
    if (consumed.then == Then::wait_room) return consumed;
    consumed.bytes += parsed.bytes;
    if (consumed.then != Then::more) return consumed;
  }
  return consumed;
}

Consumed::Then RespCodec::run(Connection& connection, const Now& now) {
  const std::span<const std::string_view> arguments = parser_.arguments();
  answer_.clear();
  resp::Command command(capital_name(arguments[0]), arguments, connection.resp->database, builder_, answer_);
  try {
    application_.translate(command);
  } catch (const TrapError&) {  // the message would exceed the limit
    answer_ = refusal_reply(wire::WireError::too_large);
    answer_now(connection, answer_);
    return Then::more;
  }
  return run_translated(connection, command, now);
}

Consumed::Then RespCodec::run_translated(Connection& connection, resp::Command& command, const Now& now) {
  if (command.is_asked()) return ask(connection, command, now);
  bool ends = false;
  if (!command.is_answered()) {
    const RespServerFacts facts{metrics_.connections.value(), metrics_.requests_total.value(),
                                static_cast<std::uint64_t>(now.steady_ns - started_ns_) / 1'000'000'000,
                                application_.databases, connection.session};
    ends = answer_server_command(command, *connection.resp, facts);
  }
  if (!command.is_answered()) {
    constexpr std::size_t longest_echo = 128;
    std::string name(parser_.arguments()[0].substr(0, longest_echo));
    std::ranges::replace_if(name, [](char c) { return c < ' ' || c > '~'; }, '?');
    resp::Writer(answer_).error(fmt::format("ERR unknown command '{}'", name));
  }
  answer_now(connection, answer_);
  return ends ? Then::drain : Then::more;
}

Consumed::Then RespCodec::ask(Connection& connection, const resp::Command& command, const Now& now) {
  RespSession& session = *connection.resp;
  const InboundMessage message{
      command.to().type,  command.message_type(),        command.to().key,
      connection.session, session.first + session.count, static_cast<std::uint32_t>(session.count),
      command.payload()};
  const Admission admission = intake_.submit(message, now.real_ns);
  if (admission == Admission::no_room) return Then::wait_room;
  if (admission == Admission::accepted) {
    session.push(command.shape());
    ++connection.in_flight;
    metrics_.requests_total.add();
  } else {
    answer_now(connection, refusal_reply(refusal(admission)));
  }
  return Then::more;
}

/// An answer that needs nobody still waits for those before it.
void RespCodec::answer_now(Connection& connection, std::string_view text) {
  RespSession& session = *connection.resp;
  if (session.count == 0) {
    outbox_.open(connection).append(text);
    return;
  }
  RespSession::Pending& place = *session.find(session.push(0));
  place.answered = true;
  place.early.assign(text);
}

bool RespCodec::answer(Connection& connection, const ReplyFrame& reply, const std::byte* payload) {
  RespSession& session = *connection.resp;
  RespSession::Pending* const place = session.find(reply.request);
  if (place == nullptr || place->answered) return false;
  if (place != &session.front()) {
    render(*place, reply, payload, place->early);
    place->answered = true;
    return true;
  }
  std::string& output = outbox_.open(connection);
  render(*place, reply, payload, output);
  session.pop();
  for (; session.count != 0 && session.front().answered; session.pop()) output.append(session.front().early);
  return true;
}

void RespCodec::render(const RespSession::Pending& place, const ReplyFrame& reply, const std::byte* payload,
                       std::string& output) const {
  resp::Writer out(output);
  switch (reply.outcome) {
    case Outcome::reply:
      application_.render({place.shape, reply.message_type, payload}, out);
      break;
    case Outcome::trapped:
      metrics_.errors_total[static_cast<std::size_t>(wire::WireError::trapped)].add();
      out.error(fmt::format("ERR {} (trap {})", refusal_text(wire::WireError::trapped),
                            trap_name(static_cast<TrapKind>(reply.detail))));
      break;
    case Outcome::no_reply:
    case Outcome::refused:  // of durable sessions only
    case Outcome::session:
      out.simple("OK");
      break;
  }
}

std::string_view RespCodec::capital_name(std::string_view name) {
  name_.assign(name);
  for (char& c : name_)
    if (c >= 'a' && c <= 'z') c = static_cast<char>(c - 'a' + 'A');
  return name_;
}

std::string RespCodec::refusal_reply(wire::WireError error) {
  metrics_.errors_total[static_cast<std::size_t>(error)].add();
  return fmt::format("-ERR {}\r\n", refusal_text(error));
}

}  // namespace lockstep
