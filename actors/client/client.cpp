// SPDX-License-Identifier: Apache-2.0
#include "lockstep/client.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <optional>
#include <set>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "client/frame_reader.hpp"
#include "client/socket.hpp"

namespace lockstep {
namespace {

using client::ClientSocket;
using client::Deadline;
using client::Frame;
using Kind = ClientError::Kind;

/// Queued bytes after which send() does not wait for flush().
constexpr std::size_t flush_bytes = 64 * 1024;

/// A node that says it takes more is taken at less.
constexpr std::uint32_t largest_message_bytes = 64U << 20U;

Deadline after(std::chrono::milliseconds time) {
  return std::chrono::steady_clock::now() + time;
}

ClientError error_of(Kind kind, std::string message) {
  return {kind, {}, TrapKind::none, std::move(message)};
}

ClientError error_of(const Frame& frame) {
  wire::ErrorBody body;
  if (frame.payload.size() < sizeof body) return error_of(Kind::closed, "the node sent an error that is none");
  std::memcpy(&body, frame.payload.data(), sizeof body);
  const auto text = frame.payload.subspan(sizeof body);
  ClientError error;
  error.code = body.code;
  error.message.assign(reinterpret_cast<const char*>(text.data()), text.size());
  if (body.code == wire::WireError::trapped) {
    error.kind = Kind::trapped;
    error.trap = static_cast<TrapKind>(body.detail);
  } else {
    error.kind = Kind::refused;
  }
  return error;
}

}  // namespace

Answer::Answer(std::uint64_t request, std::uint32_t message_type, std::span<const std::byte> payload)
    : request_(request),
      message_type_(message_type),
      bytes_(payload.size()),
      units_(std::make_unique_for_overwrite<Unit[]>((payload.size() + sizeof(Unit) - 1) / sizeof(Unit) + 1)) {
  if (!payload.empty()) std::memcpy(units_.get(), payload.data(), payload.size());
}

/// The connection's state; errors that end it are kept in `over`, and every later call gets them.
class Client::Connection {
 public:
  Connection(ClientSocket socket, const ClientOptions& options) : socket_(std::move(socket)), options_(options) {}

  [[nodiscard]] ClientResult<void> greet(Deadline deadline);
  [[nodiscard]] ClientResult<std::uint64_t> queue(wire::FrameHeader header, std::span<const std::byte> payload);
  [[nodiscard]] ClientResult<void> flush(Deadline deadline);
  [[nodiscard]] ClientResult<Answer> collect(std::uint64_t request, Deadline deadline);
  [[nodiscard]] ClientResult<Answer> collect_any(std::uint64_t* failed, Deadline deadline);
  void say_goodbye();

  [[nodiscard]] Deadline request_deadline() const { return after(options_.request_timeout); }

  wire::HelloOk node;
  std::optional<MessageBuilder> builder;
  std::set<std::uint64_t> in_flight;  ///< sent or queued, not collected; the least decides the ack distance

 private:
  void append(const wire::FrameHeader& header, std::span<const std::byte> payload);
  [[nodiscard]] ClientResult<void> turn(bool wait, Deadline deadline);
  [[nodiscard]] bool write_some();
  [[nodiscard]] bool read_some();
  void take(const Frame& frame);
  void end(ClientError error);
  [[nodiscard]] ClientResult<Answer> hand_out(std::uint64_t request);

  ClientSocket socket_;
  ClientOptions options_;
  std::string output_;
  std::size_t written_ = 0;  ///< of output_
  client::FrameReader reader_;
  std::uint64_t last_request_ = 0;
  bool greeted_ = false;
  std::optional<ClientError> over_;
  std::unordered_map<std::uint64_t, ClientResult<Answer>> arrived_;
};

ClientResult<void> Client::Connection::greet(Deadline deadline) {
  wire::Hello hello;
  hello.capabilities = wire::capability_queries;
  wire::FrameHeader header;
  header.kind = wire::FrameKind::hello;
  append(header, std::as_bytes(std::span(&hello, 1)));
  while (!greeted_)
    if (auto turned = turn(true, deadline); !turned) return turned;
  builder.emplace(std::min(node.max_payload_bytes, largest_message_bytes));
  return {};
}

ClientResult<std::uint64_t> Client::Connection::queue(wire::FrameHeader header, std::span<const std::byte> payload) {
  if (over_) return std::unexpected(*over_);
  header.request = ++last_request_;
  if (header.kind == wire::FrameKind::request) {
    const std::uint64_t least = in_flight.empty() ? header.request : *in_flight.begin();
    header.ack_distance = static_cast<std::uint16_t>(std::min<std::uint64_t>(header.request - least, UINT16_MAX));
  }
  in_flight.insert(in_flight.end(), header.request);
  append(header, payload);
  if (output_.size() - written_ >= flush_bytes)
    if (auto flushed = flush(request_deadline()); !flushed) return std::unexpected(flushed.error());
  return header.request;
}

void Client::Connection::append(const wire::FrameHeader& frame, std::span<const std::byte> payload) {
  wire::FrameHeader header = frame;
  header.length = static_cast<std::uint32_t>(payload.size());
  output_.append(reinterpret_cast<const char*>(&header), sizeof header);
  output_.append(reinterpret_cast<const char*>(payload.data()), payload.size());
}

ClientResult<void> Client::Connection::flush(Deadline deadline) {
  while (written_ != output_.size())
    if (auto turned = turn(false, deadline); !turned) return turned;
  return {};
}

/// Writes and reads what can be, waiting first where nothing can. Reading while there is something to write keeps a
/// node that waits for its answers to be read from waiting for ever.
ClientResult<void> Client::Connection::turn(bool wait, Deadline deadline) {
  if (over_) return std::unexpected(*over_);
  const bool wrote = write_some();
  const bool read = read_some();
  if (over_) return std::unexpected(*over_);
  if (wrote || read) return {};
  if (!wait && written_ == output_.size()) return {};
  if (!socket_.wait(written_ != output_.size(), deadline))
    return std::unexpected(error_of(Kind::timeout, "the node did not answer in time; whether it ran is unknown"));
  return {};
}

bool Client::Connection::write_some() {
  if (written_ == output_.size()) return false;
  const auto wrote = socket_.write(std::as_bytes(std::span(output_)).subspan(written_));
  if (!wrote) {
    end(error_of(Kind::closed, wrote.error()));
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
  const auto got = socket_.read(reader_.space());
  if (!got) {
    end(error_of(Kind::closed, got.error()));
    return false;
  }
  reader_.added(*got);
  while (const auto frame = reader_.next()) take(*frame);
  return *got != 0;
}

void Client::Connection::take(const Frame& frame) {
  const std::uint64_t request = frame.header.request;
  switch (frame.header.kind) {
    case wire::FrameKind::hello_ok:
      if (!greeted_ && frame.payload.size() >= sizeof node) {
        std::memcpy(&node, frame.payload.data(), sizeof node);
        greeted_ = node.magic == wire::protocol_magic;
      }
      if (!greeted_) end(error_of(Kind::unreachable, "what answers there is not a lockstep node"));
      return;
    case wire::FrameKind::reply:
      if (in_flight.contains(request))
        arrived_.emplace(request, Answer(request, frame.header.message_type, frame.payload));
      return;
    case wire::FrameKind::error:
      if (request == 0)
        end(error_of(frame));
      else if (in_flight.contains(request))
        arrived_.emplace(request, std::unexpected(error_of(frame)));
      return;
    case wire::FrameKind::goodbye:
      end(error_of(Kind::closed, "the node is stopping"));
      return;
    case wire::FrameKind::hello:
    case wire::FrameKind::request:
    case wire::FrameKind::query:
      break;
  }
  end(error_of(Kind::closed, "the node sent what is not of the protocol"));
}

/// The first reason stays: what follows is its consequence.
void Client::Connection::end(ClientError error) {
  if (!over_) over_ = std::move(error);
}

ClientResult<Answer> Client::Connection::hand_out(std::uint64_t request) {
  auto node_handle = arrived_.extract(request);
  in_flight.erase(request);
  return std::move(node_handle.mapped());
}

ClientResult<Answer> Client::Connection::collect(std::uint64_t request, Deadline deadline) {
  if (!in_flight.contains(request))
    return std::unexpected(error_of(Kind::misuse, fmt::format("request {} is not in flight", request)));
  while (!arrived_.contains(request)) {
    const auto turned = turn(true, deadline);
    if (turned || arrived_.contains(request)) continue;
    in_flight.erase(request);  // its answer, should it come, is passed over
    return std::unexpected(turned.error());
  }
  return hand_out(request);
}

ClientResult<Answer> Client::Connection::collect_any(std::uint64_t* failed, Deadline deadline) {
  if (failed != nullptr) *failed = 0;
  if (in_flight.empty()) return std::unexpected(error_of(Kind::misuse, "no request is in flight"));
  while (arrived_.empty()) {
    const auto turned = turn(true, deadline);
    if (!turned && arrived_.empty()) return std::unexpected(turned.error());
  }
  const std::uint64_t request = arrived_.begin()->first;
  ClientResult<Answer> answer = hand_out(request);
  if (!answer && failed != nullptr) *failed = request;
  return answer;
}

void Client::Connection::say_goodbye() {
  if (over_ || !greeted_) return;
  wire::FrameHeader header;
  header.kind = wire::FrameKind::goodbye;
  append(header, {});
  [[maybe_unused]] const bool wrote = write_some();
}

ClientResult<Client> Client::connect(const ClientOptions& options) {
  const Deadline deadline = after(options.connect_timeout);
  auto socket = ClientSocket::connect(options.host, options.port, deadline);
  if (!socket) return std::unexpected(error_of(Kind::unreachable, std::move(socket.error())));
  Client client(std::make_unique<Connection>(std::move(*socket), options));
  if (auto greeted = client.connection_->greet(deadline); !greeted) {
    ClientError error = std::move(greeted.error());
    if (error.kind == Kind::timeout || error.kind == Kind::closed) {
      error.kind = Kind::unreachable;
      error.message = fmt::format("saying hello to {}:{}: {}", options.host, options.port,
                                  error.message.starts_with("the node did not") ? "no answer in time" : error.message);
    }
    return std::unexpected(std::move(error));
  }
  return client;
}

Client::Client(std::unique_ptr<Connection> connection) : connection_(std::move(connection)) {}
Client::Client(Client&&) noexcept = default;
Client& Client::operator=(Client&&) noexcept = default;
Client::~Client() {
  if (connection_ != nullptr) connection_->say_goodbye();
}

ClientResult<std::uint64_t> Client::send_encoded(wire::FrameKind kind, const Address& to, std::uint32_t message_type,
                                                 std::span<const std::byte> payload) {
  if (payload.size() > connection_->node.max_payload_bytes) return std::unexpected(too_large());
  wire::FrameHeader header;
  header.kind = kind;
  header.message_type = message_type;
  header.actor_type = to.type;
  header.key = to.key;
  return connection_->queue(header, payload);
}

ClientResult<void> Client::flush() {
  return connection_->flush(connection_->request_deadline());
}

ClientResult<Answer> Client::collect(std::uint64_t request) {
  return connection_->collect(request, connection_->request_deadline());
}

ClientResult<Answer> Client::collect_any(std::uint64_t* failed) {
  return connection_->collect_any(failed, connection_->request_deadline());
}

std::size_t Client::in_flight() const {
  return connection_->in_flight.size();
}

const wire::HelloOk& Client::node() const {
  return connection_->node;
}

MessageBuilder& Client::builder() {
  return *connection_->builder;
}

ClientError Client::too_large() const {
  return error_of(Kind::misuse, fmt::format("the message is larger than the {} bytes the node accepts",
                                            connection_->node.max_payload_bytes));
}

}  // namespace lockstep
