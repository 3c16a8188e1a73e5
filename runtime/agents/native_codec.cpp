// SPDX-License-Identifier: Apache-2.0
#include "runtime/agents/native_codec.hpp"

#include <algorithm>
#include <cstring>
#include <string>

#include "control_generated.h"

namespace lockstep {
namespace {

using wire::FrameHeader;
using wire::FrameKind;
using wire::WireError;

/// Room for what later versions add to the hello.
constexpr std::uint32_t max_hello_bytes = 4096;

template <class T>
void append(std::string& output, const T& object) {
  output.append(reinterpret_cast<const char*>(&object), sizeof object);
}

void append(std::string& output, std::span<const std::byte> bytes) {
  output.append(reinterpret_cast<const char*>(bytes.data()), bytes.size());
}

}  // namespace

Consumed NativeCodec::consume(Connection& connection, std::span<const std::byte> bytes, std::int64_t arrival_ns) {
  Consumed consumed;
  while (bytes.size() - consumed.bytes >= sizeof(FrameHeader)) {
    const std::span<const std::byte> rest = bytes.subspan(consumed.bytes);
    FrameHeader header;
    std::memcpy(&header, rest.data(), sizeof header);
    if (!is_sound(connection, header)) {
      consumed.then = end(connection, 0, WireError::malformed);
      return consumed;
    }
    if (header.length > max_length(header.kind)) {
      consumed.then = end(connection, header.request, WireError::too_large, max_length(header.kind));
      return consumed;
    }
    if (rest.size() < sizeof header + header.length) return consumed;
    consumed.then = take(connection, header, rest.subspan(sizeof header, header.length), arrival_ns);
    if (consumed.then == Then::wait_room || consumed.then == Then::wait_answers) return consumed;
    consumed.bytes += sizeof header + header.length;
    if (consumed.then != Then::more) return consumed;
  }
  return consumed;
}

bool NativeCodec::is_sound(const Connection& connection, const FrameHeader& header) const {
  switch (header.kind) {
    case FrameKind::hello:
      return connection.durable == 0 && !connection.opening && header.flags == 0 && header.ack_distance == 0 &&
             header.request == 0;
    case FrameKind::request:
      return connection.greeted && header.flags == 0 && header.request != 0 && header.ack_distance < header.request;
    case FrameKind::query:
      return connection.greeted && header.flags == 0 && header.request != 0 && header.ack_distance == 0;
    case FrameKind::goodbye:
      return connection.greeted && header.flags == 0 && header.ack_distance == 0 && header.request == 0;
    case FrameKind::hello_ok:
    case FrameKind::reply:
    case FrameKind::error:
      break;
  }
  return false;
}

std::uint32_t NativeCodec::max_length(FrameKind kind) const {
  if (kind == FrameKind::hello) return max_hello_bytes;
  if (kind == FrameKind::goodbye) return 0;
  return static_cast<std::uint32_t>(intake_.max_payload_bytes());
}

Consumed::Then NativeCodec::take(Connection& connection, const FrameHeader& header, std::span<const std::byte> payload,
                                 std::int64_t arrival_ns) {
  if (header.kind == FrameKind::hello) return take_hello(connection, payload, arrival_ns);
  if (connection.opening) return Then::wait_answers;
  if (header.kind == FrameKind::goodbye) return take_goodbye(connection, arrival_ns);
  if (connection.in_flight >= limits_.native_in_flight()) return Then::wait_answers;
  return take_message(connection, header, payload, arrival_ns);
}

/// The session is opened, or resumed, by a record; hello_ok follows when that has been executed.
Consumed::Then NativeCodec::take_hello(Connection& connection, std::span<const std::byte> payload,
                                       std::int64_t arrival_ns) {
  wire::Hello hello;
  if (payload.size() < sizeof hello) return end(connection, 0, WireError::malformed);
  std::memcpy(&hello, payload.data(), sizeof hello);
  if (hello.magic != wire::protocol_magic) return end(connection, 0, WireError::malformed);
  if (hello.version_min > wire::protocol_version || hello.version_max < wire::protocol_version)
    return end(connection, 0, WireError::version, wire::protocol_version);
  connection.capabilities = hello.capabilities & wire::capability_queries;
  if (!intake_.takes_queries()) connection.capabilities = 0;
  if (hello.resume_session == 0 && (hello.capabilities & wire::capability_sessions) == 0) {
    connection.greeted = true;
    greet(connection);
    return Then::more;
  }
  connection.secret = hello.resume_session == 0 ? draw_secret_() : hello.resume_secret;
  flatbuffers::FlatBufferBuilder fbb;
  fbb.Finish(control::CreateSessionOpen(fbb, connection.secret));
  const Admission admission =
      intake_.submit_session(RecordKind::session_open, hello.resume_session, connection.session,
                             std::as_bytes(std::span(fbb.GetBufferPointer(), fbb.GetSize())), arrival_ns);
  if (admission == Admission::no_room) return Then::wait_room;
  connection.greeted = true;
  if (admission == Admission::halted) {  // no session begins, but queries are answered
    connection.durable = hello.resume_session;
    greet(connection);
    return Then::more;
  }
  connection.opening = true;
  ++connection.in_flight;
  metrics_.session_records_total.add();
  return Then::more;
}

void NativeCodec::greet(Connection& connection) {
  wire::HelloOk ok;
  ok.capabilities = connection.capabilities | (connection.durable != 0 ? wire::capability_sessions : 0U);
  ok.session = connection.durable;
  ok.session_secret = connection.secret;
  ok.schema_id = schema_id_;
  ok.max_payload_bytes = static_cast<std::uint32_t>(intake_.max_payload_bytes());
  ok.max_in_flight = limits_.native_in_flight();
  ok.reply_window = limits_.reply_window;
  ok.session_expiry_ms = limits_.session_expiry_ms;
  FrameHeader header;
  header.kind = FrameKind::hello_ok;
  header.length = sizeof ok;
  std::string& output = outbox_.open(connection);
  append(output, header);
  append(output, ok);
}

/// What is in flight is answered first, for with the session its answers would go.
Consumed::Then NativeCodec::take_goodbye(Connection& connection, std::int64_t arrival_ns) {
  if (connection.in_flight != 0) return Then::wait_answers;
  if (connection.durable == 0) return Then::drain;
  flatbuffers::FlatBufferBuilder fbb;
  fbb.Finish(control::CreateSessionClose(fbb, control::CloseReason::goodbye));
  const Admission admission =
      intake_.submit_session(RecordKind::session_close, connection.durable, connection.session,
                             std::as_bytes(std::span(fbb.GetBufferPointer(), fbb.GetSize())), arrival_ns);
  if (admission == Admission::no_room) return Then::wait_room;
  if (admission == Admission::accepted) {
    ++connection.in_flight;
    metrics_.session_records_total.add();
  }
  return Then::drain;
}

Consumed::Then NativeCodec::take_message(Connection& connection, const FrameHeader& header,
                                         std::span<const std::byte> payload, std::int64_t arrival_ns) {
  const bool is_query = header.kind == FrameKind::query;
  if (!is_query && connection.durable == 0 && !intake_.is_halted()) {
    write_error(connection, header.request, WireError::no_session, 0);
    return Then::more;
  }
  if (header.ack_distance >= limits_.reply_window) {
    write_error(connection, header.request, WireError::window, limits_.reply_window);
    return Then::more;
  }
  const InboundMessage message{.actor_type = header.actor_type,
                               .message_type = header.message_type,
                               .key = header.key,
                               .session = is_query ? connection.session : connection.durable,
                               .request = header.request,
                               .ack_distance = header.ack_distance,
                               .payload = payload};
  if (is_query && !intake_.takes_queries()) {
    write_error(connection, header.request, WireError::unsupported, 0);
    return Then::more;
  }
  const Admission admission = is_query ? intake_.query(message) : intake_.submit(message, arrival_ns);
  if (admission == Admission::no_room) return Then::wait_room;
  if (admission == Admission::accepted) {
    ++connection.in_flight;
    (is_query ? metrics_.queries_total : metrics_.requests_total).add();
  } else {
    write_error(connection, header.request, refusal(admission), 0);
  }
  return Then::more;
}

bool NativeCodec::answer(Connection& connection, const ReplyFrame& reply, std::span<const std::byte> payload) {
  switch (reply.outcome) {
    case Outcome::session:
      return take_event(connection, reply);
    case Outcome::trapped:
      write_error(connection, reply.request, WireError::trapped, reply.detail);
      return false;
    case Outcome::refused:
      write_error(connection, reply.request, static_cast<WireError>(reply.detail), 0);
      return false;
    case Outcome::reply:
    case Outcome::no_reply:
      break;
  }
  FrameHeader header;
  header.kind = FrameKind::reply;
  header.length = static_cast<std::uint32_t>(payload.size());
  header.request = reply.request;
  header.message_type = reply.message_type;
  std::string& output = outbox_.open(connection);
  append(output, header);
  append(output, payload);
  return false;
}

bool NativeCodec::take_event(Connection& connection, const ReplyFrame& reply) {
  connection.opening = false;
  switch (static_cast<SessionEvent>(reply.detail)) {
    case SessionEvent::opened:
    case SessionEvent::resumed:
      connection.durable = reply.request;
      greet(connection);
      return false;
    case SessionEvent::closed:
      return true;
    case SessionEvent::refused:
      write_error(connection, 0, WireError::overload, 0);
      return true;
    case SessionEvent::moved:
      write_error(connection, 0, WireError::session_moved, 0);
      return true;
    case SessionEvent::unknown:
    case SessionEvent::expired:
      break;
  }
  write_error(connection, 0, WireError::no_session, 0);
  return true;
}

void NativeCodec::goodbye(Connection& connection) {
  FrameHeader header;
  header.kind = FrameKind::goodbye;
  append(outbox_.open(connection), header);
}

Consumed::Then NativeCodec::end(Connection& connection, std::uint64_t request, WireError error, std::uint32_t detail) {
  write_error(connection, request, error, detail);
  return Then::close;
}

void NativeCodec::write_error(Connection& connection, std::uint64_t request, WireError error, std::uint32_t detail) {
  const std::string_view text = refusal_text(error);
  FrameHeader header;
  header.kind = FrameKind::error;
  header.length = static_cast<std::uint32_t>(sizeof(wire::ErrorBody) + text.size());
  header.request = request;
  std::string& output = outbox_.open(connection);
  append(output, header);
  append(output, wire::ErrorBody{error, detail});
  output.append(text);
  metrics_.errors_total[static_cast<std::size_t>(error)].add();
}

}  // namespace lockstep
