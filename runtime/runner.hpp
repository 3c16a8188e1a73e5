// SPDX-License-Identifier: Apache-2.0
#pragma once

/// Runner: a thread that polls its agents in order and knows how to sleep. Agents never learn about threads: after a
/// turn that did something, the runner wakes those of its peers that sleep, whatever it was that they wait for.
///
/// Idle policy: spin for `spin_ns`, yield once (the disk's completions run on the CPU that took its interrupt, and a
/// thread that never yields there delays them to the next tick), then sleep: in the reactor where the runner has one,
/// else on a futex. A sleeper raises its flag, looks at its agents once more, and only then sleeps; a peer that worked
/// raises a fence and looks at the flag; so no wake is lost and no system call is made while all are awake.
///
/// start(), request_stop(), join() belong to the thread that made the runner; notify() to any thread; turn()
/// to one thread when it is not start()ed: the simulator, or a node that runs all of itself in its caller.

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "base/clock.hpp"
#include "runtime/agents/agent.hpp"
#include "runtime/io/reactor.hpp"

namespace lockstep {

struct RunnerOptions {
  std::string name;          ///< thread name, at most 15 bytes are shown by the kernel
  int cpu = -1;              ///< CPU to pin to; -1 leaves it to the scheduler
  std::int64_t spin_ns = 0;  ///< how long to poll without work before sleeping
};

class Runner {
 public:
  Runner(RunnerOptions options, Clock& clock, io::Reactor* reactor, std::vector<Agent*> agents);
  ~Runner();
  Runner(const Runner&) = delete;
  Runner& operator=(const Runner&) = delete;

  /// Runners to wake when this one has done something. Before start().
  void set_peers(std::vector<Runner*> peers) { peers_ = std::move(peers); }
  /// Makes each of `runners` a peer of all the others. Before their start().
  static void introduce(std::span<const std::unique_ptr<Runner>> runners);

  /// Work for the thread to do when it leaves its loop, on things that belong to it. Before start().
  void set_on_stop(std::function<void()> on_stop) { on_stop_ = std::move(on_stop); }

  void start();
  /// Asks the thread to leave its loop after the turn it is in.
  void request_stop();
  void join();

  /// One turn without sleeping; returns how much was done.
  int turn();

  /// Wakes the runner if it sleeps.
  void notify();

  /// How often it went to sleep; for metrics and tests.
  [[nodiscard]] std::uint64_t sleeps() const { return sleeps_.load(std::memory_order_relaxed); }
  [[nodiscard]] const std::string& name() const { return options_.name; }

 private:
  void loop();
  void sleep(std::int64_t timeout_ns);
  void wake_peers();
  [[nodiscard]] std::int64_t next_deadline_ns() const;

  RunnerOptions options_;
  Clock& clock_;
  io::Reactor* reactor_;
  std::vector<Agent*> agents_;
  std::vector<Runner*> peers_;
  std::function<void()> on_stop_;
  std::thread thread_;
  std::atomic<bool> stop_{false};
  std::atomic<std::uint64_t> sleeps_{0};
  // 1 while asleep or about to be. Set by the owner before its last look at the agents, cleared by whoever wakes it;
  // both sides put a sequentially consistent fence between their store and their load (Dekker).
  alignas(64) std::atomic<std::uint32_t> asleep_{0};
};

}  // namespace lockstep
