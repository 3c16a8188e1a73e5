// SPDX-License-Identifier: Apache-2.0
#pragma once

/// ActorLog: the file of Context::log()'s lines, a producer for each executor, so that lines of one executor are in its
/// order and `sort -n` brings all into the order of history. It ends with its disk's first error and says so once; the
/// node goes on.
///
/// A sink belongs to its executor's thread, counters() to any, the rest to whoever made it.

#include <cstdint>
#include <deque>
#include <memory>
#include <string>

#include "lockstep/log_sink.hpp"
#include "runtime/log/record_log.hpp"

namespace lockstep {

class ActorLog {
 public:
  /// `when_full`: drop where executors must not wait, as in a node; block where every line is wanted, as in a replay.
  [[nodiscard]] static Result<std::unique_ptr<ActorLog>> open(const std::string& path, std::uint32_t executors,
                                                              RecordLogOptions::WhenFull when_full);

  [[nodiscard]] LogSink& sink(std::uint32_t executor) { return sinks_[executor]; }
  [[nodiscard]] RecordLogCounters counters() const { return log_->counters(); }
  [[nodiscard]] bool failed() const { return log_->failed(); }
  /// Writes all lines; no executor may run any more.
  [[nodiscard]] Result<void> close() { return log_->close(); }

 private:
  class Sink final : public LogSink {
   public:
    explicit Sink(RecordLog::Producer& producer) : producer_(producer) {}
    void write(std::string_view line) override {
      // A line that is not taken is counted by the log.
      (void)producer_.append(std::as_bytes(std::span(line)));
    }

   private:
    RecordLog::Producer& producer_;
  };

  explicit ActorLog(std::unique_ptr<RecordLog> log) : log_(std::move(log)) {}

  std::unique_ptr<RecordLog> log_;
  std::deque<Sink> sinks_;
};

}  // namespace lockstep
