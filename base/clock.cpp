// SPDX-License-Identifier: Apache-2.0
#include "base/clock.hpp"

#include <ctime>

namespace lockstep {
namespace {

std::int64_t read_ns(clockid_t id) {
  timespec time{};
  clock_gettime(id, &time);
  return time.tv_sec * 1'000'000'000LL + time.tv_nsec;
}

}  // namespace

std::int64_t SystemClock::real_ns() {
  return read_ns(CLOCK_REALTIME);
}
std::int64_t SystemClock::steady_ns() {
  return read_ns(CLOCK_MONOTONIC);
}

}  // namespace lockstep
