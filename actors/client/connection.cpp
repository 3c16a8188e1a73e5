// SPDX-License-Identifier: Apache-2.0
#include "client/connection.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <thread>
#include <utility>

namespace lockstep {
namespace {

using client::Frame;
using Kind = ClientError::Kind;
using std::chrono::steady_clock;

/// Queued bytes after which send() does not wait for flush().
constexpr std::size_t flush_bytes = 64 * 1024;

/// A node that says it takes more is taken at less.
constexpr std::uint32_t largest_message_bytes = 64U << 20U;

/// Between attempts to get a connection back.
constexpr std::chrono::milliseconds first_pause{5};
constexpr std::chrono::milliseconds longest_pause{250};

ClientError error_of(Kind kind, std::string message) {
  return {kind, {}, TrapKind::none, std::move(message)};
}

Kind kind_of(wire::WireError code) {
  if (code == wire::WireError::trapped) return Kind::trapped;
  if (code == wire::WireError::halted) return Kind::unknown;
  return code == wire::WireError::answer_lost ? Kind::answer_lost : Kind::refused;
}

ClientError error_of(const Frame& frame) {
  wire::ErrorBody body;
  if (frame.payload.size() < sizeof body) return error_of(Kind::closed, "the node sent an error that is none");
  std::memcpy(&body, frame.payload.data(), sizeof body);
  const auto text = frame.payload.subspan(sizeof body);
  ClientError error = error_of(kind_of(body.code), {reinterpret_cast<const char*>(text.data()), text.size()});
  error.code = body.code;
  if (error.kind == Kind::trapped) error.trap = static_cast<TrapKind>(body.detail);
  return error;
}

}  // namespace

Client::Connection::Deadline Client::Connection::request_deadline() const {
  return steady_clock::now() + options_.request_timeout;
}

ClientResult<void> Client::Connection::open() {
  if (dial(steady_clock::now() + options_.connect_timeout)) return {};
  if (!over_) return std::unexpected(error_of(Kind::unreachable, lost_because_));
  ClientError error = *over_;
  if (error.kind == Kind::closed) error.kind = Kind::unreachable;
  return std::unexpected(std::move(error));
}

/// Connects, says hello, and queues what is unanswered; one attempt. False: lost_because_ or over_ says why.
bool Client::Connection::dial(Deadline deadline) {
  auto socket = client::ClientSocket::connect(options_.host, options_.port, deadline);
  if (!socket) {
    lost_because_ = std::move(socket.error());
    return false;
  }
  socket_.emplace(std::move(*socket));
  reader_ = client::FrameReader();
  output_.clear();
  written_ = 0;
  if (!greet(deadline)) {
    if (socket_) lose_socket("no answer in time");
    lost_because_ = fmt::format("saying hello to {}:{}: {}", options_.host, options_.port, lost_because_);
    return false;
  }
  if (!builder_) builder_.emplace(std::min(node_.max_payload_bytes, largest_message_bytes));
  unanswered_.append_to(output_);
  return true;
}

bool Client::Connection::greet(Deadline deadline) {
  greeted_ = false;
  asked_for_session_ = needs_session_;
  wire::Hello hello;
  hello.capabilities = wire::capability_queries;
  if (asked_for_session_) hello.capabilities |= wire::capability_sessions;
  hello.resume_session = session_;
  hello.resume_secret = session_ == 0 ? 0 : node_.session_secret;
  wire::FrameHeader header;
  header.kind = wire::FrameKind::hello;
  client::append_frame(output_, header, std::as_bytes(std::span(&hello, 1)));
  while (!greeted_) {
    const bool wrote = write_some();
    const bool read = read_some();
    if (over_ || !socket_) return false;
    if (!greeted_ && !wrote && !read && !socket_->wait(written_ != output_.size(), deadline)) return false;
  }
  session_ = node_.session;
  return true;
}

/// A halted node gives none, and says so of the request itself.
ClientResult<void> Client::Connection::open_session(Deadline deadline) {
  needs_session_ = true;
  while (!socket_ || !asked_for_session_) {
    if (!socket_) {
      if (auto back = reconnect(deadline); !back) return back;
    } else if (!greet(deadline)) {
      if (over_) return std::unexpected(*over_);
      if (socket_) lose_socket("no answer to the hello in time");
    }
  }
  return {};
}

ClientResult<void> Client::Connection::reconnect(Deadline deadline) {
  for (auto pause = first_pause;; pause = std::min(2 * pause, longest_pause)) {
    if (dial(std::min(deadline, steady_clock::now() + options_.connect_timeout))) return {};
    if (over_) return std::unexpected(*over_);
    if (steady_clock::now() + pause >= deadline) break;
    std::this_thread::sleep_for(pause);
  }
  return std::unexpected(error_of(Kind::closed, lost_because_ + "; whether what is unanswered ran is not known yet"));
}

ClientResult<std::uint64_t> Client::Connection::queue(wire::FrameHeader header, std::span<const std::byte> payload) {
  if (over_) return std::unexpected(*over_);
  const Deadline deadline = request_deadline();
  renew_idle_session();
  header.request = last_request_ + 1;
  if (header.kind == wire::FrameKind::request) {
    if (session_ == 0)
      if (auto open = open_session(deadline); !open) return std::unexpected(open.error());
    if (auto open = wait_for_window(deadline); !open) return std::unexpected(open.error());
    header.ack_distance = static_cast<std::uint16_t>(unanswered_.distance(header.request));
  }
  ++last_request_;
  last_queued_ = steady_clock::now();
  unanswered_.add(header, payload);
  if (socket_) client::append_frame(output_, header, payload);
  if (output_.size() - written_ >= flush_bytes)
    if (auto flushed = flush(); !flushed) return std::unexpected(flushed.error());
  return header.request;
}

/// The node takes no request that lies a whole window above one that is unanswered.
ClientResult<void> Client::Connection::wait_for_window(Deadline deadline) {
  const std::uint64_t window = std::max(node_.reply_window, 1U);
  while (unanswered_.distance(last_request_ + 1) >= window)
    if (auto turned = turn(true, deadline); !turned) return turned;
  return {};
}

/// A session that was silent for long may be closed by the time the next request gets there, and then nobody could
/// tell whether that ran; so with nothing unanswered it is given up in time.
void Client::Connection::renew_idle_session() {
  if (!socket_ || !unanswered_.empty() || last_request_ == 0) return;
  if (steady_clock::now() - last_queued_ < std::chrono::milliseconds(node_.session_expiry_ms / 2)) return;
  say_goodbye();
  lose_socket("the session was idle");
  session_ = 0;
}

ClientResult<void> Client::Connection::flush() {
  const Deadline deadline = request_deadline();
  while (!socket_ || written_ != output_.size())
    if (auto turned = turn(false, deadline); !turned) return turned;
  return {};
}

/// Writes and reads what can be, waiting first where nothing can. Reading while there is something to write keeps a
/// node that waits for its answers to be read from waiting for ever.
ClientResult<void> Client::Connection::turn(bool wait, Deadline deadline) {
  if (over_) return std::unexpected(*over_);
  if (!socket_) return reconnect(deadline);
  const bool wrote = write_some();
  const bool read = read_some();
  if (over_) return std::unexpected(*over_);
  if (wrote || read || !socket_) return {};
  if (!wait && written_ == output_.size()) return {};
  if (!socket_->wait(written_ != output_.size(), deadline))
    return std::unexpected(error_of(Kind::timeout, "the node did not answer in time; whether it ran is not known yet"));
  return {};
}

bool Client::Connection::write_some() {
  if (!socket_ || written_ == output_.size()) return false;
  const auto wrote = socket_->write(std::as_bytes(std::span(output_)).subspan(written_));
  if (!wrote) {
    lose_socket(wrote.error());
    return false;
  }
  written_ += *wrote;
  if (written_ == output_.size()) {
    output_.clear();
    written_ = 0;
  }
  return *wrote != 0;
}

bool Client::Connection::read_some() {
  if (!socket_) return false;
  const auto got = socket_->read(reader_.space());
  if (!got) {
    lose_socket(got.error());
    return false;
  }
  reader_.added(*got);
  while (socket_ && !over_) {
    const auto frame = reader_.next();
    if (!frame) break;
    take(*frame);
  }
  return *got != 0;
}

void Client::Connection::take(const Frame& frame) {
  const std::uint64_t request = frame.header.request;
  switch (frame.header.kind) {
    case wire::FrameKind::hello_ok:
      if (!greeted_ && frame.payload.size() >= sizeof node_) {
        std::memcpy(&node_, frame.payload.data(), sizeof node_);
        greeted_ = node_.magic == wire::protocol_magic;
      }
      if (!greeted_) end(error_of(Kind::unreachable, "what answers there is not a lockstep node"));
      return;
    case wire::FrameKind::reply:
      if (unanswered_.erase(request))
        arrived_.emplace(request, Answer(request, frame.header.message_type, frame.payload));
      return;
    case wire::FrameKind::error:
      return take_error(frame);
    case wire::FrameKind::goodbye:
      return lose_socket("the node is stopping");
    case wire::FrameKind::hello:
    case wire::FrameKind::request:
    case wire::FrameKind::query:
      break;
  }
  end(error_of(Kind::closed, "the node sent what is not of the protocol"));
}

void Client::Connection::take_error(const Frame& frame) {
  ClientError error = error_of(frame);
  const std::uint64_t request = frame.header.request;
  if (request != 0) {
    if (unanswered_.erase(request)) arrived_.emplace(request, std::unexpected(std::move(error)));
  } else if (error.code == wire::WireError::no_session) {
    lose_session();
    lose_socket(std::move(error.message));
  } else if (error.code == wire::WireError::overload || error.code == wire::WireError::stopping) {
    lose_socket(std::move(error.message));
  } else {
    end(std::move(error));
  }
}

void Client::Connection::lose_socket(std::string reason) {
  socket_.reset();
  lost_because_ = std::move(reason);
}

/// The node has forgotten the session. What was unanswered may have run, or may not, and must not be sent in another.
void Client::Connection::lose_session() {
  session_ = 0;
  for (const std::uint64_t request : unanswered_.take_requests())
    arrived_.emplace(request, std::unexpected(error_of(Kind::unknown,
                                                       "the session expired before this was answered; whether it ran "
                                                       "cannot be told any more")));
}

/// The first reason stays: what follows is its consequence.
void Client::Connection::end(ClientError error) {
  if (!over_) over_ = std::move(error);
}

ClientResult<Answer> Client::Connection::hand_out(std::uint64_t request) {
  auto node_handle = arrived_.extract(request);
  return std::move(node_handle.mapped());
}

ClientResult<Answer> Client::Connection::collect(std::uint64_t request) {
  const Deadline deadline = request_deadline();
  while (!arrived_.contains(request)) {
    if (!unanswered_.contains(request))
      return std::unexpected(error_of(Kind::misuse, fmt::format("request {} is not in flight", request)));
    if (const auto turned = turn(true, deadline); !turned) return std::unexpected(turned.error());
  }
  return hand_out(request);
}

ClientResult<Answer> Client::Connection::collect_any(std::uint64_t* failed) {
  if (failed != nullptr) *failed = 0;
  if (in_flight() == 0) return std::unexpected(error_of(Kind::misuse, "no request is in flight"));
  const Deadline deadline = request_deadline();
  while (arrived_.empty())
    if (const auto turned = turn(true, deadline); !turned) return std::unexpected(turned.error());
  const std::uint64_t request = arrived_.begin()->first;
  ClientResult<Answer> answer = hand_out(request);
  if (!answer && failed != nullptr) *failed = request;
  return answer;
}

void Client::Connection::abandon(std::uint64_t request) {
  unanswered_.erase(request);
  arrived_.erase(request);
}

void Client::Connection::say_goodbye() {
  if (over_ || !socket_ || !greeted_) return;
  wire::FrameHeader header;
  header.kind = wire::FrameKind::goodbye;
  client::append_frame(output_, header, {});
  [[maybe_unused]] const bool wrote = write_some();
}

}  // namespace lockstep
