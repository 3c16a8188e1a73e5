// SPDX-License-Identifier: Apache-2.0
#pragma once

/// The client: one thread with connections to the service, and a load to put on it. Flat out, each connection always
/// has `depth` requests under way (a closed loop: latency from the sending). At a rate, request n is planned for
/// start + n / rate and goes out on whichever connection has fewer than `depth` under way; its latency counts from the
/// plan, so that a service that stalls is charged for what had to wait. Every reply is compared with what was asked.
/// What is wrong ends the bench with status 1.

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "base/descriptor.hpp"
#include "base/histogram.hpp"
#include "bench/io_profiles/message.hpp"

namespace lockstep::bench {

struct Load {
  std::size_t connections = 0;
  std::size_t depth = 0;
  std::uint64_t work_ns = 0;  ///< what the service does for each message
  double rate = 0;            ///< requests a second; 0: flat out
};

/// "32 x 8, 1 us of work, 50,000/s".
[[nodiscard]] std::string load_name(const Load& load);

/// What was asked between a start and the last reply to it.
struct Window {
  Histogram latencies_ns;
  std::uint64_t requests = 0;
  double seconds = 0;
};

class LoadClient {
 public:
  /// Connects to 127.0.0.1.
  LoadClient(std::uint16_t port, const Load& load);

  /// Asks for so long, then waits for what is under way.
  [[nodiscard]] Window run(double seconds);

 private:
  struct Asked {
    std::uint64_t number;
    std::int64_t since_ns;
  };
  struct Link {
    Descriptor socket;
    std::vector<Asked> asked;  // a ring of `depth`, oldest at first
    std::size_t first = 0;
    std::size_t under_way = 0;
    std::vector<Message> to_send;
    std::vector<std::byte> received;  // from the front: what is not a whole message yet
    std::size_t received_bytes = 0;
  };

  void ask(Link& link, std::int64_t since_ns);
  void ask_flat_out(Link& link);
  /// Asks what is due; returns when the next is, or no_time when a reply must come first.
  std::int64_t ask_as_planned();
  Link* link_with_room();
  void send(Link& link);
  void wait(std::int64_t until_ns);
  void receive(Link& link);
  void take(Link& link, const Message& reply, std::int64_t now_ns);

  Load load_;
  Descriptor epoll_;
  std::vector<Link> links_;
  std::size_t next_link_ = 0;
  std::uint64_t next_number_ = 0;
  std::uint64_t under_way_ = 0;
  std::int64_t start_ns_ = 0;
  std::int64_t end_ns_ = 0;
  std::uint64_t planned_ = 0;  // of this window
  Window window_;
};

}  // namespace lockstep::bench
