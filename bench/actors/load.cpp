// SPDX-License-Identifier: Apache-2.0
#include "bench/actors/load.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <numeric>
#include <thread>
#include <vector>

#include "bench/support/cpu.hpp"
#include "bench/support/tsc.hpp"

namespace lockstep::bench {
namespace {

constexpr std::uint64_t warm_up_transactions = 4'000;
constexpr std::uint64_t warm_up_window = 64;
/// Transactions that are due at once go together, so that a runtime which batches may.
constexpr int sends_per_turn = 64;
constexpr double longest_wait_s = 20;
constexpr std::chrono::milliseconds rest{60};

[[noreturn]] void give_up(const std::string& runtime, const std::string& what) {
  fmt::print(stderr, "bench_actors: {}: {}\n", runtime, what);
  std::exit(1);
}

/// When the transactions of a run were planned, by number; written by the sender, read by whoever takes the answer,
/// with the runtime's own hand-over between the two.
class PlannedTimes {
 public:
  std::uint64_t& of(std::uint64_t number) { return ticks_[number % ticks_.size()]; }

 private:
  // More than a runtime that keeps order ever has in flight by a window, and than one that does not is behind.
  std::array<std::uint64_t, 1U << 16U> ticks_{};
};

class Load final : public Answers {
 public:
  Load(const Contestant& contestant, const LoadPlan& plan, double ticks_per_ns)
      : contestant_(contestant), plan_(plan), ticks_per_ns_(ticks_per_ns) {}

  void take(std::uint64_t number, bool) override {
    const std::uint64_t now = ticks();
    const std::uint64_t taken = answered_.load(std::memory_order_relaxed);  // of this thread, or one that handed over
    if (contestant_.actors == 1 && number != taken) disordered_ = true;
    numbers_ += number;
    if (number >= warm_up_transactions) {
      const std::uint64_t planned = interval_ticks_ > 0 ? planned_at(number) : sent_at_.of(number);
      result_.latency_ns.add(now > planned ? in_ns(now - planned) : 0);
    }
    last_answer_ = now;
    answered_.store(taken + 1, std::memory_order_release);  // pairs with answered()
  }

  LoadRun run() {
    {
      const std::unique_ptr<ActorRuntime> runtime = contestant_.make(*this);
      send_by_window(*runtime, warm_up_transactions, warm_up_window, UINT64_MAX);
      await_answers(*runtime);
      // Only now: threads that the runtime started would have been pinned along.
      pin_to_cpu(allowed_cpus().front());
      start_ = ticks();
      if (plan_.rate_per_s > 0) {
        interval_ticks_ = ticks_per_ns_ * 1e9 / plan_.rate_per_s;
        send_by_plan(*runtime);
      } else {
        send_by_window(*runtime, UINT64_MAX, plan_.window, start_ + in_ticks(plan_.seconds));
      }
      await_answers(*runtime);
      check(runtime->balances());
    }
    const double seconds = static_cast<double>(in_ns(last_answer_ - start_)) / 1e9;
    result_.answered_per_s = static_cast<double>(sent_ - warm_up_transactions) / seconds;
    return result_;
  }

 private:
  [[nodiscard]] std::uint64_t answered() const { return answered_.load(std::memory_order_acquire); }
  [[nodiscard]] std::uint64_t in_ns(std::uint64_t elapsed_ticks) const {
    return static_cast<std::uint64_t>(static_cast<double>(elapsed_ticks) / ticks_per_ns_);
  }
  [[nodiscard]] std::uint64_t in_ticks(double seconds) const {
    return static_cast<std::uint64_t>(seconds * 1e9 * ticks_per_ns_);
  }
  [[nodiscard]] std::uint64_t planned_at(std::uint64_t number) const {
    return start_ + static_cast<std::uint64_t>(static_cast<double>(number - warm_up_transactions) * interval_ticks_);
  }

  bool send_next(ActorRuntime& runtime) {
    if (!runtime.send(next_)) return false;
    ++sent_;
    next_ = stream_.next();
    return true;
  }

  void send_by_plan(ActorRuntime& runtime) {
    const auto count = static_cast<std::uint64_t>(plan_.rate_per_s * plan_.seconds);
    const std::uint64_t end = warm_up_transactions + count;
    const std::uint64_t give_up_at = start_ + in_ticks(4 * plan_.seconds);
    while (sent_ < end) {
      const std::uint64_t now = ticks();
      if (now > give_up_at) break;
      for (int i = 0; i < sends_per_turn && sent_ < end && planned_at(sent_) <= now; ++i) {
        if (!send_next(runtime)) break;
      }
      runtime.turn();
    }
    result_.behind = sent_ < end || ticks() - start_ > in_ticks(1.25 * plan_.seconds);
  }

  void send_by_window(ActorRuntime& runtime, std::uint64_t end, std::uint64_t window, std::uint64_t until) {
    while (sent_ < end && ticks() < until) {
      const std::uint64_t room = window - (sent_ - answered());
      for (std::uint64_t i = 0; i < std::min<std::uint64_t>(room, sends_per_turn) && sent_ < end; ++i) {
        sent_at_.of(sent_) = ticks();
        if (!send_next(runtime)) break;
      }
      runtime.turn();
    }
  }

  void await_answers(ActorRuntime& runtime) {
    const std::uint64_t give_up_at = ticks() + in_ticks(longest_wait_s);
    while (answered() < sent_) {
      runtime.turn();
      if (ticks() > give_up_at)
        give_up(contestant_.name, fmt::format("{} of {} transactions were answered", answered(), sent_));
    }
  }

  void check(const std::vector<std::int64_t>& balances) const {
    if (answered() != sent_ || disordered_ || numbers_ != sent_ * (sent_ - 1) / 2)
      give_up(contestant_.name, "a transaction was answered twice, never, or out of order");
    std::vector<Accounts> expected(contestant_.actors);
    TransactionStream stream;
    for (std::uint64_t i = 0; i < sent_; ++i) static_cast<void>(expected[i % contestant_.actors].apply(stream.next()));
    std::vector<std::int64_t> all;
    for (const Accounts& each : expected) all.insert(all.end(), each.balances().begin(), each.balances().end());
    if (all != balances) give_up(contestant_.name, "the final balances are not those of the transactions");
  }

  const Contestant& contestant_;
  LoadPlan plan_;
  double ticks_per_ns_;
  TransactionStream stream_;
  Transaction next_ = stream_.next();
  std::uint64_t sent_ = 0;
  std::uint64_t start_ = 0;
  double interval_ticks_ = 0;
  PlannedTimes sent_at_;

  // What take() writes.
  bool disordered_ = false;
  std::uint64_t numbers_ = 0;
  std::uint64_t last_answer_ = 0;
  LoadRun result_;
  alignas(128) std::atomic<std::uint64_t> answered_{0};
};

}  // namespace

LoadRun run_load(const Contestant& contestant, const LoadPlan& plan, double ticks_per_ns) {
  // Under a real-time scheduler others starve meanwhile, and after a second of that the kernel gives them 50 ms in one
  // piece, in the middle of a sample. They get theirs before.
  std::this_thread::sleep_for(rest);
  const auto load = std::make_unique<Load>(contestant, plan, ticks_per_ns);
  LoadRun result;
  // A thread of its own, so that pinning ends with the run.
  std::thread sender([&] { result = load->run(); });
  sender.join();
  return result;
}

}  // namespace lockstep::bench
