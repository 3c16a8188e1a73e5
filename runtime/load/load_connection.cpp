// SPDX-License-Identifier: Apache-2.0
#include "runtime/load/load_connection.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <chrono>
#include <cstring>

namespace lockstep {
namespace {

constexpr std::chrono::seconds connect_timeout{20};

/// Why a first frame that is no hello_ok came. A node that cannot take a session now says so; only one that speaks
/// another version, or is none, will never take this one.
Error refusal_of(const client::Frame& frame) {
  if (frame.header.kind == wire::FrameKind::goodbye) return {ErrorCode::busy, "the node is stopping"};
  wire::ErrorBody body;
  if (frame.header.kind != wire::FrameKind::error || frame.payload.size() < sizeof body)
    return {ErrorCode::incompatible, "what answers there is not a lockstep node"};
  std::memcpy(&body, frame.payload.data(), sizeof body);
  const auto text = frame.payload.subspan(sizeof body);
  const bool never = body.code == wire::WireError::version || body.code == wire::WireError::malformed;
  return {
      never ? ErrorCode::incompatible : ErrorCode::busy,
      fmt::format("the node refuses: {}", std::string_view(reinterpret_cast<const char*>(text.data()), text.size()))};
}

}  // namespace

Result<LoadConnection> LoadConnection::open(const LoadOptions& options) {
  const client::Deadline deadline = std::chrono::steady_clock::now() + connect_timeout;
  auto socket = client::ClientSocket::connect(options.host, options.port, deadline);
  if (!socket) return fail(ErrorCode::io, std::move(socket.error()));
  LoadConnection connection(std::move(*socket));
  if (auto greeted = connection.greet(deadline, options.depth); !greeted)
    return fail(greeted.error().code,
                fmt::format("saying hello to {}:{}: {}", options.host, options.port, greeted.error().message));
  return connection;
}

Result<void> LoadConnection::greet(client::Deadline deadline, std::uint32_t depth) {
  wire::Hello hello;
  hello.capabilities = wire::capability_queries | wire::capability_sessions;
  wire::FrameHeader header;
  header.kind = wire::FrameKind::hello;
  append(header, std::as_bytes(std::span(&hello, 1)));
  for (;;) {
    const bool flushed = flush();
    receive();
    if (const auto frame = reader_.next()) {
      wire::HelloOk ok;
      if (frame->header.kind != wire::FrameKind::hello_ok || frame->payload.size() < sizeof ok)
        return std::unexpected(refusal_of(*frame));
      std::memcpy(&ok, frame->payload.data(), sizeof ok);
      window_ = std::max(1U, ok.reply_window);
      depth_ = std::max(1U, std::min({depth, ok.max_in_flight, std::uint32_t{UINT16_MAX} / 2}));
      planned_ns_.assign(std::bit_ceil(std::size_t{depth_} * 2), unused);
      return {};
    }
    if (over_) return fail(ErrorCode::io, *over_);
    if (!socket_.wait(!flushed, deadline))
      return fail(
          ErrorCode::io,
          fmt::format("no answer within {} s; is its disk full (its log and /status say so), or is it something "
                      "else than a lockstep node?",
                      connect_timeout.count()));
  }
}

void LoadConnection::send(const LoadRequest& request, std::int64_t planned_ns) {
  wire::FrameHeader header;
  header.kind = request.kind;
  header.request = next_;
  if (request.kind == wire::FrameKind::request) header.ack_distance = static_cast<std::uint16_t>(next_ - oldest_);
  header.message_type = request.message_type;
  header.actor_type = request.to.type;
  header.key = request.to.key;
  append(header, request.payload);
  planned_ns_[slot(next_++)] = planned_ns;
  ++in_flight_;
}

void LoadConnection::say_goodbye() {
  if (over_ || in_flight_ != 0) return;
  wire::FrameHeader header;
  header.kind = wire::FrameKind::goodbye;
  append(header, {});
  flush();
}

void LoadConnection::append(const wire::FrameHeader& frame, std::span<const std::byte> payload) {
  wire::FrameHeader header = frame;
  header.length = static_cast<std::uint32_t>(payload.size());
  output_.append(reinterpret_cast<const char*>(&header), sizeof header);
  output_.append(reinterpret_cast<const char*>(payload.data()), payload.size());
}

bool LoadConnection::flush() {
  while (!over_ && written_ != output_.size()) {
    const auto wrote = socket_.write(std::as_bytes(std::span(output_)).subspan(written_));
    if (!wrote)
      over_ = wrote.error();
    else if (*wrote == 0)
      return false;
    else
      written_ += *wrote;
  }
  output_.clear();
  written_ = 0;
  return true;
}

void LoadConnection::receive() {
  if (over_) return;
  const auto got = socket_.read(reader_.space());
  if (got)
    reader_.added(*got);
  else
    over_ = got.error();
}

std::optional<LoadConnection::Answer> LoadConnection::next_answer() {
  while (const auto frame = reader_.next()) {
    const std::uint64_t request = frame->header.request;
    Answer answer;
    answer.is_reply = frame->header.kind == wire::FrameKind::reply;
    if (!answer.is_reply && frame->payload.size() >= sizeof answer.error) {
      std::memcpy(&answer.error, frame->payload.data(), sizeof answer.error);
      const auto text = frame->payload.subspan(sizeof answer.error);
      answer.text = {reinterpret_cast<const char*>(text.data()), text.size()};
    }
    const bool is_mine = request >= oldest_ && request < next_ && planned_ns_[slot(request)] != unused;
    if (!is_mine) {
      if (!over_ && frame->header.kind != wire::FrameKind::reply)
        over_ = answer.text.empty() ? "the node is stopping" : std::string(answer.text);
      continue;
    }
    answer.planned_ns = std::exchange(planned_ns_[slot(request)], unused);
    --in_flight_;
    while (oldest_ != next_ && planned_ns_[slot(oldest_)] == unused) ++oldest_;
    return answer;
  }
  return std::nullopt;
}

}  // namespace lockstep
