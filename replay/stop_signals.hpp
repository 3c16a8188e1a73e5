// SPDX-License-Identifier: Apache-2.0
#pragma once

/// StopSignals: SIGTERM and SIGINT, blocked in every thread started behind it and taken by the one that waits for them.

#include <csignal>
#include <ctime>

namespace lockstep {

class StopSignals {
 public:
  StopSignals() {
    sigemptyset(&set_);
    sigaddset(&set_, SIGTERM);
    sigaddset(&set_, SIGINT);
    pthread_sigmask(SIG_BLOCK, &set_, nullptr);
  }
  /// Whether one came within `timeout_ms`.
  [[nodiscard]] bool wait(long timeout_ms) const {
    const timespec timeout{timeout_ms / 1000, timeout_ms % 1000 * 1'000'000};
    return sigtimedwait(&set_, nullptr, &timeout) > 0;
  }

 private:
  sigset_t set_{};
};

}  // namespace lockstep
