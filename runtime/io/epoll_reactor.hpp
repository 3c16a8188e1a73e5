// SPDX-License-Identifier: Apache-2.0
#pragma once

/// EpollReactor: a Reactor by level-triggered epoll and helper threads, for hosts that forbid io_uring. Same events and
/// same order per connection as the io_uring one; a system call per receive and per send.

#include <sys/epoll.h>

#include <array>
#include <thread>

#include "base/descriptor.hpp"
#include "runtime/io/epoll_disk.hpp"
#include "runtime/io/epoll_network.hpp"
#include "runtime/io/reactor.hpp"
#include "runtime/io/reactor_counts.hpp"
#include "runtime/io/waker.hpp"

namespace lockstep::io {

class EpollReactor final : public Reactor {
 public:
  [[nodiscard]] static Result<std::unique_ptr<Reactor>> make(const ReactorOptions& options);

  EpollReactor(Descriptor epoll, const ReactorOptions& options);

  Network& network() override { return network_; }
  Disk& disk() override { return disk_; }
  int turn() override;
  void wait(std::int64_t timeout_ns) override;
  void wake() override { waker_.wake(); }
  std::string_view backend() const override { return "epoll"; }
  ReactorCounters counters() const override;

 private:
  Result<void> start();
  void bind_owner();
  int await(std::int64_t timeout_ns);

  Descriptor epoll_;
  std::thread::id owner_;
  ReactorCounts counts_;
  Waker waker_;
  EpollNetwork network_;
  EpollDisk disk_;
  std::array<epoll_event, 256> ready_{};
  int ready_count_ = 0;
};

}  // namespace lockstep::io
