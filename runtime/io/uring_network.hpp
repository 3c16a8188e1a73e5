// SPDX-License-Identifier: Apache-2.0
#pragma once

/// UringNetwork: Network by io_uring: multishot accept, multishot receive into a provided buffer ring, one send at a
/// time per connection. One thread; its ring's other users do not matter to it.
///
/// The kernel ends a multishot receive for many reasons, data in the same completion or not; so whether it goes on
/// (IORING_CQE_F_MORE) is looked at on every completion. When no buffer is free it ends with ENOBUFS: the connection
/// then waits in line until buffers have come back; arming it at once would fail at once, for ever.
///
///     open --peer ends, an error, close()--> ending: shutdown(), cancel --nothing outstanding--> close(fd), `closed`
///
/// Closing a descriptor does not cancel what the kernel does with it, and a slot must not be used again while
/// completions of its last user are under way: hence the count of what is outstanding.

#include <cstdint>
#include <deque>
#include <vector>

#include "base/descriptor.hpp"
#include "runtime/io/buffer_ring.hpp"
#include "runtime/io/connection_table.hpp"
#include "runtime/io/event_queue.hpp"
#include "runtime/io/network.hpp"
#include "runtime/io/reactor.hpp"
#include "runtime/io/reactor_counts.hpp"
#include "runtime/io/receive_buffers.hpp"
#include "runtime/io/ring.hpp"

namespace lockstep::io {

class UringNetwork final : public Network {
 public:
  /// `ring` outlives the use of this, but is closed before this is destroyed.
  UringNetwork(Ring& ring, const ReactorOptions& options, ReactorCounts& counts);
  ~UringNetwork() override;
  UringNetwork(const UringNetwork&) = delete;
  UringNetwork& operator=(const UringNetwork&) = delete;
  [[nodiscard]] Result<void> start();

  Result<Endpoint> listen(const Endpoint& at) override;
  void stop_listening() override;
  std::span<const NetworkEvent> poll() override;
  void send(ConnectionId id, std::span<const std::byte> bytes) override;
  void pause(ConnectionId id) override;
  void resume(ConnectionId id) override;
  void close(ConnectionId id) override;

  // For the reactor.
  void on_completion(const RingCompletion& completion);
  /// Before the ring submits: publishes returned buffers and arms what waited for them or for its rest to end.
  void prepare();
  [[nodiscard]] std::int64_t deadline_ns() const { return rest_until_ns_; }
  /// The owner should not sleep: events wait for poll(), or the buffers it would free are waited for.
  [[nodiscard]] bool wants_poll() const { return !events_.empty() || (!starved_.empty() && events_.has_handed_out()); }

 private:
  struct Connection : ConnectionBase {
    bool ending = false;
    bool receiving = false;         ///< a receive is armed in the kernel
    bool starved = false;           ///< it stands in the line for buffers
    bool peer_ended = false;        ///< the end was seen while bytes were held back; comes into force at resume()
    int error = 0;                  ///< for the `closed` event
    std::uint32_t outstanding = 0;  ///< completions still to come that name this slot
  };
  struct Listener {
    Descriptor socket;
    bool stopping = false;
    bool resting = false;
  };

  [[nodiscard]] Connection* find_open(ConnectionId id);
  [[nodiscard]] Tag tag_of(TagKind kind, std::uint32_t slot);
  void arm_accept(std::uint32_t listener);
  void arm_receive(std::uint32_t slot);
  void arm_send(std::uint32_t slot);
  void starve(std::uint32_t slot);
  void on_accept(const RingCompletion& completion);
  void on_receive(const RingCompletion& completion);
  void on_send(const RingCompletion& completion);
  /// Bytes or nothing: what a completion of a receive brought.
  void take_data(std::uint32_t slot, const RingCompletion& completion);
  void add_connection(int fd, std::uint32_t listener);
  void peer_ended(std::uint32_t slot, int error);
  void end(std::uint32_t slot, int error);
  /// One thing less is outstanding; true when the connection is ending, and thereby perhaps gone.
  bool settle(std::uint32_t slot);

  Ring& ring_;
  const ReactorOptions options_;
  ReactorCounts& counts_;
  ConnectionTable<Connection> connections_;
  std::vector<Listener> listeners_;
  std::int64_t rest_until_ns_ = INT64_MAX;
  ReceiveBuffers buffers_;
  BufferRing buffer_ring_;
  std::deque<ConnectionId> starved_;
  EventQueue events_;
};

}  // namespace lockstep::io
