// SPDX-License-Identifier: Apache-2.0
#include "runtime/watchdog.hpp"

#include <pthread.h>

#include <chrono>
#include <cstdlib>
#include <vector>

#include "base/log.hpp"

namespace lockstep {
namespace {

/// What an executor was at when last looked at, and for how many looks in a row.
struct Seen {
  std::uint64_t seq = 0;
  std::uint64_t handlers = 0;
  std::uint32_t looks = 0;
};

constexpr std::uint32_t looks_per_timeout = 4;

}  // namespace

Watchdog::Watchdog(std::span<const Breadcrumb> executors, std::uint32_t timeout_ms)
    : executors_(executors), timeout_ms_(timeout_ms), thread_([this] { watch(); }) {}

Watchdog::~Watchdog() {
  {
    const std::lock_guard guard(mutex_);
    end_ = true;
  }
  ended_.notify_one();
  thread_.join();
}

void Watchdog::watch() {
  pthread_setname_np(pthread_self(), "watchdog");
  std::vector<Seen> seen(executors_.size());
  const auto pause = std::chrono::milliseconds(timeout_ms_) / looks_per_timeout;
  std::unique_lock guard(mutex_);
  while (!ended_.wait_for(guard, pause, [this] { return end_; })) {
    for (std::size_t i = 0; i < seen.size(); ++i) {
      const Seen now{executors_[i].seq.load(std::memory_order_relaxed),
                     executors_[i].handlers.load(std::memory_order_relaxed), 0};
      const bool same = now.seq != 0 && now.seq == seen[i].seq && now.handlers == seen[i].handlers;
      const std::uint32_t looks = same ? seen[i].looks + 1 : 0;
      seen[i] = now;
      seen[i].looks = looks;
      if (looks < looks_per_timeout) continue;
      log(LogLevel::error, "watchdog",
          "executor {} has been in one handler for {} ms, of seq {}; the process ends itself. A handler that needs "
          "longer wants a higher handler_timeout_ms in [threads]",
          i, timeout_ms_, now.seq);
      std::abort();
    }
  }
}

}  // namespace lockstep
