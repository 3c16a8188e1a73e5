// SPDX-License-Identifier: Apache-2.0
#pragma once

/// Outbox: what a perimeter has to say, gathered per connection during a turn and sent once at its end, one send in
/// flight per connection. While it is in flight new bytes gather in a second buffer. Buffers are lent to connections
/// that have something to say and taken back when it is said, so the memory follows the traffic, not the connections.
///
/// A client that does not read is cut off when more than `max_output_bytes` wait for it: a reply is never what stops
/// the node.
///
/// Belongs to one perimeter and its thread.

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "runtime/agents/connection.hpp"
#include "runtime/io/network.hpp"

namespace lockstep {

class Outbox {
 public:
  Outbox(io::Network& network, std::size_t max_output_bytes) : network_(network), max_output_bytes_(max_output_bytes) {}

  /// Where to append what this connection is to be told. Valid until flush().
  [[nodiscard]] std::string& open(Connection& connection) {
    if (!connection.dirty) mark(connection);
    return connection.output;
  }

  /// Sends what was gathered. Connections over their limit are put into `cut_off` instead.
  void flush(std::vector<Connection*>& cut_off);
  /// The send in flight is done.
  void sent(Connection& connection);

  /// An empty buffer that has, if possible, memory already; and its way back.
  [[nodiscard]] std::string take_buffer();
  void give_back(std::string& buffer);
  /// Forgets a connection that is about to be released.
  void forget(Connection& connection);

  [[nodiscard]] std::uint64_t bytes_sent() const { return bytes_sent_; }

 private:
  void mark(Connection& connection);

  io::Network& network_;
  std::size_t max_output_bytes_;
  std::uint64_t bytes_sent_ = 0;
  std::vector<Connection*> dirty_;
  std::vector<std::string> spare_;
};

}  // namespace lockstep
