// SPDX-License-Identifier: Apache-2.0
#pragma once

/// EpollNetwork: Network by level-triggered epoll, for hosts that forbid io_uring. It watches its sockets in the epoll
/// descriptor of its reactor, which waits and hands readiness to on_ready(). Bytes are read when they are there and a
/// buffer is free: one receive per connection and turn. One thread.

#include <cstdint>
#include <vector>

#include "base/descriptor.hpp"
#include "runtime/io/connection_table.hpp"
#include "runtime/io/event_queue.hpp"
#include "runtime/io/network.hpp"
#include "runtime/io/reactor.hpp"
#include "runtime/io/reactor_counts.hpp"
#include "runtime/io/receive_buffers.hpp"
#include "runtime/io/tag.hpp"

namespace lockstep::io {

class EpollNetwork final : public Network {
 public:
  /// `epoll` is the reactor's descriptor and outlives this.
  EpollNetwork(int epoll, const ReactorOptions& options, ReactorCounts& counts);
  ~EpollNetwork() override;
  EpollNetwork(const EpollNetwork&) = delete;
  EpollNetwork& operator=(const EpollNetwork&) = delete;
  [[nodiscard]] Result<void> start();

  Result<Endpoint> listen(const Endpoint& at) override;
  void stop_listening() override;
  std::span<const NetworkEvent> poll() override;
  void send(ConnectionId id, std::span<const std::byte> bytes) override;
  void pause(ConnectionId id) override;
  void resume(ConnectionId id) override;
  void close(ConnectionId id) override;

  // For the reactor.
  void on_ready(Tag tag, std::uint32_t readiness);
  /// Listeners whose rest is over accept again.
  void wake_listeners(std::int64_t steady_ns);
  /// The steady time at which a resting listener wants to be woken, or INT64_MAX.
  [[nodiscard]] std::int64_t deadline_ns() const { return rest_until_ns_; }
  /// The owner should not sleep: events wait for poll(), or the buffers it would free are waited for.
  [[nodiscard]] bool wants_poll() const { return !events_.empty() || (!starved_.empty() && events_.has_handed_out()); }

 private:
  struct Connection : ConnectionBase {
    std::uint32_t watched = 0;  ///< the readiness epoll is asked for
    bool registered = false;
  };

  void accept_some(std::uint32_t listener);
  void add_connection(int fd, std::uint32_t listener);
  void receive_some(std::uint32_t slot);
  void send_some(std::uint32_t slot);
  /// Brings what epoll watches in line with what the connection waits for.
  void watch(std::uint32_t slot);
  void rest(std::uint32_t listener);
  void end(std::uint32_t slot, int error);

  const int epoll_;
  const ReactorOptions options_;
  ReactorCounts& counts_;
  ConnectionTable<Connection> connections_;
  std::vector<Descriptor> listeners_;
  std::int64_t rest_until_ns_ = INT64_MAX;
  ReceiveBuffers buffers_;
  std::vector<std::uint32_t> free_buffers_;
  std::vector<std::uint32_t> starved_;  ///< slots epoll does not watch for reading because no buffer was free
  EventQueue events_;
};

}  // namespace lockstep::io
