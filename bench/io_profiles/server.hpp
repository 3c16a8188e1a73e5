// SPDX-License-Identifier: Apache-2.0
#pragma once

/// The server as a process of its own: a child of the bench that runs the same program, so that what the kernel
/// accounts to it (CPU time, switches, events) is the service's alone. Bench and server talk over a socket pair; the
/// server listens on loopback, on a port the kernel chooses. It dies with the bench, or by stop().

#include <sys/types.h>

#include <array>
#include <cstdint>

#include "base/descriptor.hpp"
#include "bench/io_profiles/profiles.hpp"

namespace lockstep::bench {

/// What the bench tells the server first. Both run the same program, so it goes over as it lies in memory.
struct ServerPlan {
  static constexpr std::uint32_t most_workers = 64;
  Profile profile = Profile::epoll_pool;
  std::uint32_t connections = 0;
  std::uint64_t work_rounds = 0;  ///< a message, see work()
  std::uint32_t workers = 0;
  std::array<int, most_workers> worker_cpus{};
  int submitter_cpu = -1;
};

/// What the server has used and done since it started.
struct ServerUsage {
  std::uint64_t requests = 0;
  std::uint64_t system_calls = 0;  ///< as its workers count them
  std::int64_t voluntary_switches = 0;
  std::int64_t involuntary_switches = 0;
  std::int64_t cpu_ns = 0;
};

/// The bench's end. What fails ends the bench with status 1.
class ServerProcess {
 public:
  explicit ServerProcess(const ServerPlan& plan);
  ~ServerProcess() { stop(); }
  ServerProcess(const ServerProcess&) = delete;
  ServerProcess& operator=(const ServerProcess&) = delete;

  [[nodiscard]] pid_t pid() const { return pid_; }
  [[nodiscard]] std::uint16_t port() const { return port_; }
  /// Returns when as many clients as planned are connected and all workers serve.
  void wait_until_ready();
  [[nodiscard]] ServerUsage usage();
  /// Kills it and waits for its end.
  void stop();

 private:
  void receive(void* to, std::size_t bytes);

  Descriptor control_;
  pid_t pid_ = -1;
  std::uint16_t port_ = 0;
};

/// The command line's first word that makes the program a server; the descriptor of its end of the pair follows.
inline constexpr const char* serve_option = "--serve";

/// The server's end: its whole life. `control` is its end of the pair.
int serve(int control);

}  // namespace lockstep::bench
