// SPDX-License-Identifier: Apache-2.0
#pragma once

/// Clock: where time enters the process. A runner reads it once a loop turn and hands the value to its agents; nothing
/// else reads a clock, so a simulator can own time. Stamps are `real_ns`; deadlines and idle policies use `steady_ns`.

#include <cstdint>

namespace lockstep {

class Clock {
 public:
  virtual ~Clock() = default;
  /// Nanoseconds since the Unix epoch; may step in either direction.
  [[nodiscard]] virtual std::int64_t real_ns() = 0;
  /// Nanoseconds since some start; never runs back.
  [[nodiscard]] virtual std::int64_t steady_ns() = 0;
};

/// CLOCK_REALTIME and CLOCK_MONOTONIC. Any thread.
class SystemClock final : public Clock {
 public:
  std::int64_t real_ns() override;
  std::int64_t steady_ns() override;
};

/// A clock that moves only when told to: tests, the simulator, replay. One thread.
class ManualClock final : public Clock {
 public:
  explicit ManualClock(std::int64_t real_ns = 0) : real_ns_(real_ns) {}
  std::int64_t real_ns() override { return real_ns_; }
  std::int64_t steady_ns() override { return steady_ns_; }
  void advance(std::int64_t by_ns) { real_ns_ += by_ns, steady_ns_ += by_ns; }

 private:
  std::int64_t real_ns_;
  std::int64_t steady_ns_ = 0;
};

}  // namespace lockstep
