// SPDX-License-Identifier: Apache-2.0
#pragma once

/// Network: every touch of a client's socket, as an interface with real sides (io_uring, epoll) and a simulated one.
/// Events are gathered by poll() into one array, so that a virtual call is paid per loop turn, not per message.
///
/// One thread owns a Network. A connection is named by a ConnectionId that is never used twice in a Network's life;
/// calls with a dead one do nothing, since its `closed` may still be on its way. A peer that ends its sending side ends
/// the connection.
/// At most one send is in flight per connection (two would interleave); its bytes stay
/// valid until the `sent` event. Reads arrive in order; when a connection is paused its bytes stay in the kernel and
/// the peer's window closes, which is all the back-pressure there is.

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "base/error.hpp"

namespace lockstep::io {

/// slot in the low 32 bits, generation above.
enum class ConnectionId : std::uint64_t { none = 0 };

struct Endpoint {
  std::string host = "127.0.0.1";
  std::uint16_t port = 0;  ///< 0: the kernel chooses; listen() returns which
  bool shared = false;     ///< listen() beside others of this process, which all ask so; the kernel spreads connections
  /// HOST:PORT, as parse_endpoint() reads it: an IPv6 host stands in brackets.
  [[nodiscard]] std::string text() const {
    const bool brackets = host.find(':') != std::string::npos;
    return (brackets ? "[" : "") + host + (brackets ? "]:" : ":") + std::to_string(port);
  }
};

enum class NetworkEventKind : std::uint8_t {
  accepted,  ///< a new connection; reading has begun
  received,  ///< `data` holds bytes; valid until the next poll()
  sent,      ///< the one send in flight is done, all of it
  closed,    ///< the peer or an error ended it, or close() has finished; the id is dead. `error` is an errno or 0
};

struct NetworkEvent {
  NetworkEventKind kind{};
  int error = 0;
  std::uint32_t listener = 0;  ///< for `accepted`: which listen() it came through, 0, 1, … in call order
  ConnectionId connection{};
  std::span<const std::byte> data{};
};

class Network {
 public:
  virtual ~Network() = default;
  /// Starts to accept; returns the bound address. Errors name address and errno (in use, not permitted, bad host).
  [[nodiscard]] virtual Result<Endpoint> listen(const Endpoint& at) = 0;
  /// Stops accepting on every listener; connections live on.
  virtual void stop_listening() = 0;
  /// Events since the last call, never blocking. Returned spans die at the next call.
  [[nodiscard]] virtual std::span<const NetworkEvent> poll() = 0;
  /// Sends all of `bytes`, then reports `sent`. Must not be called while a send of this connection is in flight.
  virtual void send(ConnectionId connection, std::span<const std::byte> bytes) = 0;
  /// Stops or restarts reading. Bytes already handed out by poll() stand; what was gathered since, or comes in while
  /// the kernel is told, is held back until resume(), and so is the end of the stream behind it.
  virtual void pause(ConnectionId connection) = 0;
  virtual void resume(ConnectionId connection) = 0;
  /// Ends a connection; `closed` follows when nothing is outstanding on it, and no other event of it before that.
  virtual void close(ConnectionId connection) = 0;
};

}  // namespace lockstep::io
