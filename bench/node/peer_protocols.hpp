// SPDX-License-Identifier: Apache-2.0
#pragma once

/// How the peers that redis-benchmark cannot drive are asked to store a value, and how their answers are told apart:
///
///   nats    NATS client protocol (https://docs.nats.io/reference/reference-protocols/nats-protocol): a publish to a
///           subject of a JetStream stream, answered on the connection's inbox once the stream has stored it
///   etcd    a put through the JSON gateway (https://etcd.io/docs/v3.4/dev-guide/api_grpc_gateway/), HTTP/1.1 with the
///           connection kept open
///
/// A connection's answers come in the order of its requests. Whatever is not the success that is expected ends the
/// program.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

namespace lockstep::bench {

/// What lies at the beginning of what a connection has received.
struct Received {
  enum class Kind : std::uint8_t { part, answer, other };  ///< `part`: it has not come as a whole yet
  Kind kind = Kind::part;
  std::size_t bytes = 0;  ///< that it takes
};

class PeerProtocol {
 public:
  PeerProtocol() = default;
  PeerProtocol(const PeerProtocol&) = delete;
  PeerProtocol& operator=(const PeerProtocol&) = delete;
  virtual ~PeerProtocol() = default;

  /// What a new connection sends first. Where it is not empty, the first answer is to it.
  [[nodiscard]] virtual std::string hello(std::uint32_t connection) const = 0;
  /// Appends a request to store three bytes under key `key`, of 100,000.
  virtual void append_request(std::string& out, std::uint32_t connection, std::uint32_t key) const = 0;
  /// `reply` is where what has to be said at once is appended.
  [[nodiscard]] virtual Received look_at(std::string_view input, std::string& reply) const = 0;
};

/// Null for a name there is not.
[[nodiscard]] std::unique_ptr<PeerProtocol> make_peer_protocol(std::string_view name);

}  // namespace lockstep::bench
