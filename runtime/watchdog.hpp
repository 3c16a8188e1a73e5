// SPDX-License-Identifier: Apache-2.0
#pragma once

/// Watchdog: ends the process when a handler does not. A handler that never returns would stop the node for good and
/// nobody would know why; an abort() leaves a core file and a breadcrumb, and so goes the way of every crash: restart,
/// and after the second one the node halts before that message.
///
/// A thread of its own, asleep but for a few looks at the breadcrumbs a minute. It looks from construction to
/// destruction; the breadcrumbs outlive it.

#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <span>
#include <thread>

#include "runtime/agents/breadcrumb.hpp"

namespace lockstep {

class Watchdog {
 public:
  /// `timeout_ms` is how long one handler may take; it is noticed within a quarter more.
  Watchdog(std::span<const Breadcrumb> executors, std::uint32_t timeout_ms);
  ~Watchdog();
  Watchdog(const Watchdog&) = delete;
  Watchdog& operator=(const Watchdog&) = delete;

 private:
  void watch();

  std::span<const Breadcrumb> executors_;
  std::uint32_t timeout_ms_;
  std::mutex mutex_;
  std::condition_variable ended_;
  bool end_ = false;
  std::thread thread_;
};

}  // namespace lockstep
