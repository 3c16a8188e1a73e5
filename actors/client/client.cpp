// SPDX-License-Identifier: Apache-2.0
#include "lockstep/client.hpp"

#include <fmt/format.h>

#include <cstring>
#include <utility>

#include "client/connection.hpp"

namespace lockstep {

Answer::Answer(std::uint64_t request, std::uint32_t message_type, std::span<const std::byte> payload)
    : request_(request),
      message_type_(message_type),
      bytes_(payload.size()),
      units_(std::make_unique_for_overwrite<Unit[]>((payload.size() + sizeof(Unit) - 1) / sizeof(Unit) + 1)) {
  if (!payload.empty()) std::memcpy(units_.get(), payload.data(), payload.size());
}

ClientResult<Client> Client::connect(const ClientOptions& options) {
  Client client(std::make_unique<Connection>(options));
  if (auto opened = client.connection_->open(); !opened) return std::unexpected(std::move(opened.error()));
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
  if (payload.size() > node().max_payload_bytes) return std::unexpected(too_large());
  wire::FrameHeader header;
  header.kind = kind;
  header.message_type = message_type;
  header.actor_type = to.type;
  header.key = to.key;
  return connection_->queue(header, payload);
}

ClientResult<void> Client::flush() {
  return connection_->flush();
}

ClientResult<Answer> Client::collect(std::uint64_t request) {
  return connection_->collect(request);
}

ClientResult<Answer> Client::collect_any(std::uint64_t* failed) {
  return connection_->collect_any(failed);
}

void Client::abandon(std::uint64_t request) {
  connection_->abandon(request);
}

std::size_t Client::in_flight() const {
  return connection_->in_flight();
}

const wire::HelloOk& Client::node() const {
  return connection_->node();
}

MessageBuilder& Client::builder() {
  return connection_->builder();
}

ClientError Client::too_large() const {
  return {ClientError::Kind::misuse,
          {},
          TrapKind::none,
          fmt::format("the message is larger than the {} bytes the node accepts", node().max_payload_bytes)};
}

}  // namespace lockstep
