// SPDX-License-Identifier: Apache-2.0
#pragma once

/// ServedBench: a NodeBench that echoes, over real loopback sockets, on a thread of its own until it is destroyed.

#include <atomic>
#include <memory>
#include <thread>

#include "base/clock.hpp"
#include "runtime/agents/testing/perimeter_bench.hpp"
#include "runtime/io/reactor.hpp"

namespace lockstep::testing {

class ServedBench {
 public:
  explicit ServedBench(const NodeBench::Options& options = {}, io::Backend backend = io::Backend::epoll,
                       std::uint16_t port = 0)
      : reactor_(io::make_reactor(backend).value()),
        bench_(reactor_->network(), options),
        port_(bench_.perimeter.listen({.port = port}, CodecKind::native).value().port),
        thread_([this] { serve(); }) {}
  ~ServedBench() {
    end_.store(true, std::memory_order_relaxed);
    reactor_->wake();
    thread_.join();
  }
  [[nodiscard]] std::uint16_t port() const { return port_; }

  /// Requests and queries are taken in but not answered while it is set; sessions are.
  void set_silent(bool silent) { silent_.store(silent, std::memory_order_relaxed); }
  /// Stops as a node does; returns at once.
  void stop() {
    bench_.perimeter.request_stop(0);
    reactor_->wake();
  }

 private:
  void serve() {
    SystemClock clock;
    while (!end_.load(std::memory_order_relaxed)) {
      const Now now{.real_ns = clock.real_ns(), .steady_ns = clock.steady_ns()};
      int done = reactor_->turn() + bench_.perimeter.do_work(now) + bench_.sequencer.do_work(now);
      if (silent_.load(std::memory_order_relaxed))
        bench_.execute_sessions();
      else
        done += bench_.execute() + bench_.execute_queries();
      if (done == 0) reactor_->wait(1'000'000);
    }
  }

  std::unique_ptr<io::Reactor> reactor_;
  NodeBench bench_;
  std::uint16_t port_;
  std::atomic<bool> end_{false};
  std::atomic<bool> silent_{false};
  std::thread thread_;
};

}  // namespace lockstep::testing
