// SPDX-License-Identifier: Apache-2.0
#include "runtime/log/actor_log.hpp"

namespace lockstep {

Result<std::unique_ptr<ActorLog>> ActorLog::open(const std::string& path, std::uint32_t executors,
                                                 RecordLogOptions::WhenFull when_full) {
  auto opened = RecordLog::open({.path = path,
                                 .producers = executors,
                                 .ring_bytes = 1 << 20,
                                 .when_full = when_full,
                                 .longest_sleep_us = 10'000});
  if (!opened) return std::unexpected(opened.error());
  std::unique_ptr<ActorLog> log(new ActorLog(std::move(*opened)));
  for (std::uint32_t i = 0; i < executors; ++i) log->sinks_.emplace_back(log->log_->producer(i));
  return log;
}

}  // namespace lockstep
