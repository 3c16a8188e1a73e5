// SPDX-License-Identifier: Apache-2.0
#pragma once

/// Load: drives a node with native frames and measures how long answers take. It is an open loop: request n is planned
/// for start + n / rate, whatever became of those before it, and its latency counts from that plan. So a node that
/// stalls is charged for every request it held up, not only for the few that happened to be in flight ("coordinated
/// omission", https://www.youtube.com/watch?v=lJ8ydIuPFeU). With rate 0 it is a closed loop: as many requests as the
/// connections' depth allows, each timed from its sending; good for capacity, not for latency under load.
///
/// Plain sockets, its own threads; nothing of the node's. run_load() blocks until all is answered, or what is left can
/// not be any more.

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>

#include "base/error.hpp"
#include "base/histogram.hpp"
#include "lockstep/address.hpp"
#include "lockstep/wire.hpp"

namespace lockstep {

/// One request as a workload wants it sent; `payload` is valid until the next make().
struct LoadRequest {
  wire::FrameKind kind = wire::FrameKind::request;
  Address to;
  std::uint32_t message_type = 0;
  std::span<const std::byte> payload;
};

/// What is sent. Each thread has one of its own.
class Workload {
 public:
  virtual ~Workload() = default;
  /// Request number `index` of the run: 0, 1, … over all threads, each asked for once.
  [[nodiscard]] virtual LoadRequest make(std::uint64_t index) = 0;
};
using WorkloadFactory = std::function<std::unique_ptr<Workload>(std::uint32_t thread)>;

struct LoadOptions {
  std::string host = "127.0.0.1";
  std::uint16_t port = 0;
  std::uint64_t requests = 100'000;
  double rate = 0;  ///< requests per second over all connections; 0: closed loop
  std::uint32_t connections = 16;
  std::uint32_t depth = 64;                   ///< requests in flight per connection, at most what the node allows
  std::uint32_t threads = 1;                  ///< each drives its share of the connections
  std::uint64_t warmup = 0;                   ///< requests at the start that are sent and answered but not measured
  std::int64_t patience_ns = 30'000'000'000;  ///< without any answer to what is in flight; then it counts as lost
};

struct LoadResult {
  std::uint64_t sent = 0;
  std::uint64_t answered = 0;  ///< with a reply
  std::uint64_t refused = 0;
  std::uint64_t trapped = 0;
  std::uint64_t lost = 0;       ///< no answer: the connection ended, or patience did
  std::uint64_t unsent = 0;     ///< of connections that had ended by then
  std::int64_t elapsed_ns = 0;  ///< from the first measured request's plan to the last answer
  Histogram latency_ns;         ///< from plan to answer
  bool disconnected = false;    ///< a connection ended before its requests did
  std::string first_error;      ///< of a refused or trapped request; empty if there was none
  std::string ended_by;         ///< why there are lost or unsent requests; empty if there are none

  /// Each request was sent and got an answer, a refusal included.
  [[nodiscard]] bool complete() const { return lost == 0 && unsent == 0; }
  [[nodiscard]] double rate() const {
    return elapsed_ns <= 0 ? 0 : static_cast<double>(latency_ns.count()) * 1e9 / static_cast<double>(elapsed_ns);
  }
};

/// Connects everything, then runs. `progress` is told how many answers came, about five times a second, on a thread of
/// its own. Errors: a connection that cannot be made, options that cannot be.
[[nodiscard]] Result<LoadResult> run_load(const LoadOptions& options, const WorkloadFactory& workload,
                                          const std::function<void(std::uint64_t answered)>& progress = {});

}  // namespace lockstep
