// SPDX-License-Identifier: Apache-2.0
#include "bench/support/regime.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>

#include "bench/support/cpu.hpp"

namespace lockstep::bench {

namespace {

constexpr std::uint64_t series = 9;
constexpr std::uint64_t trips_per_series = 200;

struct alignas(128) Flag {
  std::atomic<std::uint64_t> value{0};
};

void wait_for(const Flag& flag, std::uint64_t value) {
  while (flag.value.load(std::memory_order_acquire) != value) {  // pairs with the other side's set()
  }
}

void set(Flag& flag, std::uint64_t value) {
  flag.value.store(value, std::memory_order_release);  // pairs with the other side's wait_for()
}

}  // namespace

std::string_view regime_name(Regime regime) {
  switch (regime) {
    case Regime::siblings:
      return "S";
    case Regime::close:
      return "C";
    case Regime::far:
      return "F";
    case Regime::one_cpu:
      break;
  }
  return "-";
}

Probe probe_regime() {
  Flag ping;
  Flag pong;
  std::array<double, series> round_trips{};
  const auto server = [&] {
    for (std::uint64_t i = 1; i <= series * trips_per_series; ++i) {
      wait_for(ping, i);
      set(pong, i);
    }
  };
  const auto client = [&] {
    std::uint64_t trip = 0;
    for (double& round_trip : round_trips) {
      const auto start = std::chrono::steady_clock::now();
      for (std::uint64_t i = 0; i < trips_per_series; ++i) {
        set(ping, ++trip);
        wait_for(pong, trip);
      }
      const std::chrono::duration<double, std::nano> took = std::chrono::steady_clock::now() - start;
      round_trip = took.count() / trips_per_series;
    }
  };
  static_cast<void>(run_pair(client, server));
  std::nth_element(round_trips.begin(), round_trips.begin() + series / 2, round_trips.end());
  const double median = round_trips[series / 2];
  return {median, median < 85 ? Regime::siblings : median < 200 ? Regime::close : Regime::far};
}

}  // namespace lockstep::bench
