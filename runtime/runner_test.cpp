// SPDX-License-Identifier: Apache-2.0
#include "runtime/runner.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <memory>

using namespace lockstep;

namespace {

/// Passes a token back and forth through two cells, so that each runner sleeps and is woken over and over.
class Paddle final : public Agent {
 public:
  Paddle(std::atomic<std::uint64_t>& in, std::atomic<std::uint64_t>& out, std::uint64_t last)
      : in_(in), out_(out), last_(last) {}
  [[nodiscard]] std::string_view name() const override { return "paddle"; }
  int do_work(const Now&) override {
    const std::uint64_t value = in_.load(std::memory_order_acquire);  // pairs with the other paddle's store
    if (value == seen_ || value > last_) return 0;
    seen_ = value;
    out_.store(value + 1, std::memory_order_release);  // pairs with the other paddle's load
    return 1;
  }

 private:
  std::atomic<std::uint64_t>& in_;
  std::atomic<std::uint64_t>& out_;
  std::uint64_t last_;
  std::uint64_t seen_ = 0;
};

class Alarm final : public Agent {
 public:
  explicit Alarm(std::int64_t deadline_ns) : due_ns_(deadline_ns) {}
  [[nodiscard]] std::string_view name() const override { return "alarm"; }
  int do_work(const Now& now) override {
    if (rang || now.steady_ns < due_ns_) return 0;
    rang = true;
    return 1;
  }
  [[nodiscard]] std::int64_t deadline_ns() const override { return rang ? INT64_MAX : due_ns_; }
  std::atomic<bool> rang{false};

 private:
  std::int64_t due_ns_;
};

}  // namespace

TEST_CASE("runners that only sleep and wake each other lose no wake") {
  constexpr std::uint64_t passes = 20'000;
  SystemClock clock;
  std::atomic<std::uint64_t> ping{0};
  std::atomic<std::uint64_t> pong{0};
  Paddle left(ping, pong, passes);
  Paddle right(pong, ping, passes);
  Runner first({.name = "left"}, clock, nullptr, {&left});
  Runner second({.name = "right"}, clock, nullptr, {&right});
  first.set_peers({&second});
  second.set_peers({&first});
  first.start();
  second.start();
  ping.store(1, std::memory_order_release);
  first.notify();
  while (ping.load(std::memory_order_acquire) < passes && pong.load(std::memory_order_acquire) < passes)
    std::this_thread::yield();
  first.request_stop();
  second.request_stop();
  first.join();
  second.join();
  CHECK(std::max(ping.load(), pong.load()) >= passes);
}

TEST_CASE("a runner without work sleeps, and wakes for its agents' deadline") {
  SystemClock clock;
  Alarm alarm(clock.steady_ns() + 20'000'000);
  Runner runner({.name = "alarm"}, clock, nullptr, {&alarm});
  runner.start();
  while (!alarm.rang.load()) std::this_thread::yield();
  runner.request_stop();
  runner.join();
  CHECK(runner.sleeps() >= 1);
  CHECK(runner.sleeps() < 10);
}
