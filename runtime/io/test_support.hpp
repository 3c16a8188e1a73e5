// SPDX-License-Identifier: Apache-2.0
#pragma once

/// What the tests of this folder share: a blocking TCP peer on loopback, a driver that turns a reactor until something
/// holds, and a loop over the backends. Test code only.

#include <doctest/doctest.h>
#include <sys/resource.h>

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/descriptor.hpp"
#include "runtime/io/reactor.hpp"

namespace lockstep::io::test {

/// Runs `body` once for each backend that this host allows.
void on_each_backend(const std::function<void(Backend)>& body);

[[nodiscard]] std::unique_ptr<Reactor> reactor_of(Backend backend, const ReactorOptions& options = {});

/// A blocking socket connected to 127.0.0.1:port, whose receives give up after a minute.
[[nodiscard]] Descriptor connect_to(std::uint16_t port);

/// Connects an existing blocking socket to 127.0.0.1:port.
[[nodiscard]] bool try_connect(int fd, std::uint16_t port);
void connect_socket(int fd, std::uint16_t port);

/// Bytes that show where a stream lost or repeated some: a function of the position.
[[nodiscard]] std::vector<std::byte> pattern(std::size_t bytes, std::uint64_t seed);

/// Sends all of `bytes`, blocking.
void send_all(int fd, std::span<const std::byte> bytes);
/// Receives exactly `count` bytes, or fewer when the peer ends.
[[nodiscard]] std::vector<std::byte> receive_exactly(int fd, std::size_t count);

/// Number of open descriptors of this process.
[[nodiscard]] std::size_t open_descriptors();

/// Lowers a soft resource limit of this process for a while.
class LowerLimit {
 public:
  LowerLimit(int resource, rlim_t value);
  ~LowerLimit() { restore(); }
  LowerLimit(const LowerLimit&) = delete;
  LowerLimit& operator=(const LowerLimit&) = delete;
  void restore();

 private:
  int resource_;
  rlimit before_{};
};

/// A server in the test's own thread: collects what each connection received, and remembers every event.
class Server {
 public:
  explicit Server(Backend backend, const ReactorOptions& options = {});

  [[nodiscard]] Reactor& reactor() { return *reactor_; }
  [[nodiscard]] Network& network() { return reactor_->network(); }
  [[nodiscard]] std::uint16_t port() const { return port_; }

  /// Turns and polls once, sleeping up to a millisecond when there is nothing; returns the number of events.
  std::size_t step();
  /// Steps until `done` holds; fails the test after a minute.
  void until(const std::function<bool()>& done);
  /// Steps for a while during which nothing should happen.
  void settle(int milliseconds);

  /// Steps until one more connection is accepted; its id.
  ConnectionId accept();
  void send(ConnectionId id, std::span<const std::byte> bytes) { network().send(id, bytes); }

  std::map<ConnectionId, std::vector<std::byte>> received;
  std::map<ConnectionId, int> sent;
  std::map<ConnectionId, int> closed_error;  ///< present once `closed` has come
  std::vector<ConnectionId> accepted;
  std::size_t closes = 0;
  std::function<void(const NetworkEvent&)> on_event = [](const NetworkEvent&) {};

 private:
  std::unique_ptr<Reactor> reactor_;
  std::uint16_t port_ = 0;
  std::size_t taken_ = 0;
};

/// What all connections together have received.
[[nodiscard]] std::size_t received_bytes(const Server& server);

/// Closes a socket so that its peer sees a reset.
void reset_connection(Descriptor& socket);

}  // namespace lockstep::io::test
