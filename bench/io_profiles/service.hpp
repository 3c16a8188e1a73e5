// SPDX-License-Identifier: Apache-2.0
#pragma once

/// The inside of the server: its connections, what its workers count, and the three ways of serving. A process serves
/// one load in one way and is then killed, so nothing here stops or frees. What fails ends the process.

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string_view>
#include <vector>

#include "bench/io_profiles/connection.hpp"
#include "bench/io_profiles/profiles.hpp"
#include "bench/io_profiles/server.hpp"

namespace lockstep::bench {

/// Written by one worker, read by the thread that answers the bench; each value stands for itself, so relaxed.
struct alignas(64) WorkerCounts {
  std::atomic<std::uint64_t> requests{0};
  std::atomic<std::uint64_t> system_calls{0};

  void add_requests(std::uint64_t more) { add(requests, more); }
  void add_system_calls(std::uint64_t more) { add(system_calls, more); }

 private:
  static void add(std::atomic<std::uint64_t>& count, std::uint64_t more) {
    count.store(count.load(std::memory_order_relaxed) + more, std::memory_order_relaxed);
  }
};

struct ServiceState {
  ServerPlan plan;
  std::vector<Connection> connections;
  std::byte* memory = nullptr;  ///< of all connections' buffers, one after the other
  std::unique_ptr<WorkerCounts[]> counts;

  [[nodiscard]] std::size_t memory_bytes() const { return connections.size() * Connection::memory_bytes; }
};

class Service {
 public:
  Service() = default;
  virtual ~Service() = default;
  Service(const Service&) = delete;
  Service& operator=(const Service&) = delete;

  /// The life of a worker, on its own thread; calls `ready` when it is about to serve. Workers are started one after
  /// the other, each when the one before is ready.
  virtual void run(std::size_t worker, const std::function<void()>& ready) = 0;
};

[[nodiscard]] std::unique_ptr<Service> make_epoll_pool(ServiceState& state);
[[nodiscard]] std::unique_ptr<Service> make_shared_ring(ServiceState& state);
/// Profiles own_ring, deferred, send_zc and sqpoll.
[[nodiscard]] std::unique_ptr<Service> make_own_rings(ServiceState& state);

/// Ends the process with status 1 and says why: `error` is an errno.
[[noreturn]] void server_failed(std::string_view operation, int error);

}  // namespace lockstep::bench
