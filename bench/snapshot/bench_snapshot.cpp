// SPDX-License-Identifier: Apache-2.0

/// What a snapshot adds to a message's latency: 256 MiB of state, 100,000 messages a second as an open loop (message n
/// is planned for start + n / rate, and its latency counts from the plan), each changing a page anywhere in the state.
/// This thread stamps, seals and takes answers; the executor and the snapshots have threads of their own; there is no
/// network and no journal. Rounds without and with snapshots, taken one after the other, alternate.

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <thread>
#include <vector>

#include <unistd.h>

#include "base/clock.hpp"
#include "base/histogram.hpp"
#include "bench/snapshot/ledger.hpp"
#include "bench/support/hiccup.hpp"
#include "bench/support/options.hpp"
#include "bench/support/report.hpp"
#include "bench/support/results.hpp"
#include "bench/support/tsc.hpp"
#include "journal/posix_disk.hpp"
#include "runtime/agents/snapshot_agent.hpp"
#include "runtime/runner.hpp"

namespace lockstep::bench {
namespace {

constexpr std::int64_t interval_ns = 10'000;  // 100,000 a second
constexpr std::int64_t round_ns = 2'000'000'000;

struct Round {
  double p50_us = 0;
  double p99_us = 0;
  double p999_us = 0;
  double max_us = 0;
  std::uint64_t snapshots = 0;
  std::uint64_t abandoned = 0;
};

class Bench {
 public:
  explicit Bench(const std::string& directory)
      : log_(std::move(*HashLog::open(disk_, directory, {}, 0, UINT64_MAX))),
        checkpoints_(node_.execution().board(), log_, true),
        snapshots_(snapshot_disk_, node_.execution(), checkpoints_,
                   {.directory = directory,
                    .genesis = encode(LedgerNode::genesis()),
                    .shards = LedgerNode::genesis().shards,
                    .retry_ns = 0}),
        executor_({.name = "executor", .spin_ns = 0}, clock_, nullptr, {&node_.execution().agent(0)}),
        writer_({.name = "snapshots"}, clock_, nullptr, {&snapshots_}) {
    writer_.set_peers({&executor_});
    executor_.start();
    writer_.start();
    for (std::uint64_t i = 0; i < 2'000'000; ++i) {  // every page, with near certainty
      while (!node_.send(0, 0)) turn();
    }
    while (node_.answered() < node_.sent()) turn();
  }
  ~Bench() {
    for (Runner* runner : {&executor_, &writer_}) runner->request_stop();
    for (Runner* runner : {&executor_, &writer_}) runner->join();
  }

  Round run(bool with_snapshots) {
    Histogram latencies;
    const std::uint64_t taken = snapshots_.metrics().taken_total.value();
    const std::uint64_t abandoned = snapshots_.metrics().abandoned_total.value();
    std::uint64_t wishes = 0;
    const std::int64_t started_ns = clock_.steady_ns();
    std::int64_t planned = 0;  // messages sent
    const std::int64_t count = round_ns / interval_ns;
    while (planned < count || node_.answered() < node_.sent()) {
      const std::int64_t now_ns = clock_.steady_ns() - started_ns;
      while (planned < count && planned * interval_ns <= now_ns &&
             node_.send(static_cast<std::uint64_t>(planned), started_ns + now_ns))
        ++planned;
      if (with_snapshots && snapshots_.answer().done >= wishes) wishes = snapshots_.ask();
      // So that on few CPUs the others run too, and a real-time scheduler has nothing to throttle.
      std::this_thread::sleep_for(std::chrono::microseconds(20));
      turn([&](std::uint64_t request) {
        const std::int64_t plan_ns = started_ns + static_cast<std::int64_t>(request) * interval_ns;
        latencies.add(static_cast<std::uint64_t>(std::max<std::int64_t>(0, clock_.steady_ns() - plan_ns)));
      });
    }
    while (snapshots_.answer().done < wishes) {  // none reaches into the next round
      node_.send(0, clock_.steady_ns());
      turn();
    }
    const auto us = [&](double percent) { return static_cast<double>(latencies.percentile(percent)) / 1000; };
    return {us(50),
            us(99),
            us(99.9),
            us(100),
            snapshots_.metrics().taken_total.value() - taken,
            snapshots_.metrics().abandoned_total.value() - abandoned};
  }

 private:
  template <class Take>
  void turn(Take&& take) {
    const Now now{clock_.real_ns(), clock_.steady_ns()};
    node_.sequencer().do_work(now);
    BatchPool& pool = node_.execution().pool();
    pool.written().publish(pool.sealed());
    pool.committed().publish(pool.sealed());
    executor_.notify();
    checkpoints_.do_work(now);
    SnapshotControl& control = *node_.execution().snapshots();
    control.stored.publish(control.published.read());
    node_.take_answers(take);
  }
  void turn() {
    turn([](std::uint64_t) {});
  }

  SystemClock clock_;
  PosixDisk disk_;
  PosixDisk snapshot_disk_;
  LedgerNode node_;
  HashLog log_;
  CheckpointAgent checkpoints_;
  SnapshotAgent snapshots_;
  Runner executor_;
  Runner writer_;
};

double median_of(std::vector<Round> rounds, double Round::* field) {
  std::ranges::nth_element(rounds, rounds.begin() + static_cast<std::ptrdiff_t>(rounds.size() / 2), {}, field);
  return rounds[rounds.size() / 2].*field;
}

double best_of(const std::vector<Round>& rounds, double Round::* field) {
  return std::ranges::min(rounds, {}, field).*field;
}

void add_rows(Table& table, const char* name, const std::vector<Round>& rounds) {
  for (const bool best : {false, true}) {
    const auto cell = [&](double Round::* field) {
      return fmt::format("{:.0f}", best ? best_of(rounds, field) : median_of(rounds, field));
    };
    std::uint64_t snapshots = 0;
    std::uint64_t abandoned = 0;
    for (const Round& round : rounds) snapshots += round.snapshots, abandoned += round.abandoned;
    table.add_row({fmt::format("{}, {}", name, best ? "best" : "median"), cell(&Round::p50_us), cell(&Round::p99_us),
                   cell(&Round::p999_us), cell(&Round::max_us), fmt::format("{}", snapshots),
                   fmt::format("{}", abandoned)});
  }
}

int run(const Options& options) {
  const std::string directory = std::filesystem::temp_directory_path() / fmt::format("lockstep-bench-{}", getpid());
  std::filesystem::create_directories(directory);
  fmt::print("{}", describe_machine());
  std::vector<Round> without;
  std::vector<Round> with;
  {
    PosixDisk disk;
    LOCKSTEP_ASSERT(HardStateFile::create(disk, directory, {}).has_value(), "a bench needs a directory");
    Bench bench(directory);
    const std::int64_t started_ns = SystemClock{}.steady_ns();
    while (without.size() < 2 || static_cast<double>(SystemClock{}.steady_ns() - started_ns) / 1e9 < options.seconds) {
      without.push_back(bench.run(false));
      with.push_back(bench.run(true));
    }
  }
  std::filesystem::remove_all(directory);
  const Hiccups hiccups = measure_hiccups(1, calibrate_ticks().ticks_per_ns);
  Table table({"256 MiB, 100,000 messages/s", "p50 us", "p99 us", "p99.9 us", "max us", "snapshots", "abandoned"});
  add_rows(table, "no snapshots", without);
  add_rows(table, "back to back", with);
  fmt::print("\n{}", table.text());
  fmt::print("machine: gaps of a thread that only watches the clock: p99.9 {:.1f} us, longest {:.0f} us in 1 s\n",
             static_cast<double>(hiccups.gaps_ns.percentile(99.9)) / 1000,
             static_cast<double>(hiccups.gaps_ns.max()) / 1000);
  const double added_us = median_of(with, &Round::p999_us) - median_of(without, &Round::p999_us);
  fmt::print("goal: less than 1,000 us more at p99.9; median {:.0f}, best {:.0f}: {}\n", added_us,
             best_of(with, &Round::p999_us) - best_of(without, &Round::p999_us), added_us < 1000 ? "met" : "not met");
  Results(options.out, "snapshot").figures(table);
  return 0;
}

}  // namespace
}  // namespace lockstep::bench

int main(int argc, char** argv) {
  return lockstep::bench::run(lockstep::bench::parse_options(
      argc, argv, "What snapshots add to the latency of messages, at 256 MiB of state and 100,000 messages a second.",
      30));
}
