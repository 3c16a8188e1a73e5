// SPDX-License-Identifier: Apache-2.0
// How fast is the ring between two threads, beside its peers? Throughput and round trip, 8 and 64 byte items, one item
// at a time, lazily, and in batches (ours written and read in place, Boost's copied); and what each of its tricks is
// worth. All queues hold 4,096 items and are driven by the same loops.

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <memory>
#include <type_traits>
#include <vector>

#include "base/cpu_relax.hpp"
#include "bench/ring/items.hpp"
#include "bench/ring/queues.hpp"
#include "bench/ring/verdicts.hpp"
#include "bench/support/cpu.hpp"
#include "bench/support/options.hpp"
#include "bench/support/report.hpp"
#include "bench/support/results.hpp"
#include "bench/support/rounds.hpp"
#include "bench/support/table.hpp"

namespace lockstep::bench {
namespace {

// Shorter than a time slice of the scheduler, so that samples survive on a machine that others use too.
constexpr double sample_seconds = 0.002;
constexpr std::uint64_t round_trips_per_sample = 3'000;

/// How many items make a sample of about `sample_seconds`; follows what the last sample took.
class SampleSize {
 public:
  [[nodiscard]] std::uint64_t items() const { return items_; }
  void follow(double seconds) {
    const double factor = std::clamp(sample_seconds / seconds, 0.25, 4.0);
    items_ = std::max<std::uint64_t>(10'000, static_cast<std::uint64_t>(static_cast<double>(items_) * factor));
  }

 private:
  std::uint64_t items_ = 100'000;
};

/// A throughput case in million items a second; `produce` and `consume` move `items` items through the queue.
template <class Queue, class Produce, class Consume>
Case throughput_case(std::string name, Produce produce, Consume consume) {
  return {std::move(name), [queue = std::make_shared<Queue>(), size = SampleSize(), produce, consume]() mutable {
            const std::uint64_t items = size.items();
            const PairTiming timing = run_pair([&] { produce(*queue, items); }, [&] { consume(*queue, items); });
            size.follow(timing.seconds);
            return Sample{static_cast<double>(items) / timing.seconds / 1e6, timing.preempted};
          }};
}

template <class Item, class Queue>
Case single_case(std::string name) {
  const auto produce = [](Queue& queue, std::uint64_t items) {
    for (std::uint64_t i = 0; i < items; ++i) {
      const Item item = Item::make(i);
      while (!queue.push(item)) cpu_relax();
    }
    queue.pushed_all();
  };
  const auto consume = [](Queue& queue, std::uint64_t items) {
    Checker checker;
    Item item{};
    for (std::uint64_t i = 0; i < items; ++i) {
      while (!queue.pop(item)) cpu_relax();
      checker.take(item);
    }
    queue.popped_all();
    checker.expect(items);
  };
  return throughput_case<Queue>(std::move(name), produce, consume);
}

template <class Queue>
Case batch_case(std::string name, std::size_t batch) {
  const auto produce = [batch](Queue& queue, std::uint64_t items) {
    for (std::uint64_t sent = 0; sent < items;) {
      const std::size_t pushed = queue.push_batch(sent, std::min<std::uint64_t>(batch, items - sent));
      if (pushed == 0) cpu_relax();
      sent += pushed;
    }
  };
  const auto consume = [batch](Queue& queue, std::uint64_t items) {
    Checker checker;
    for (std::uint64_t taken = 0; taken < items;) {
      const std::size_t popped = queue.pop_batch(checker, batch);
      if (popped == 0) cpu_relax();
      taken += popped;
    }
    checker.expect(items);
  };
  return throughput_case<Queue>(std::move(name), produce, consume);
}

/// A round trip in ns: one item there, the same back.
template <class Item, class Queue>
Case round_trip_case(std::string name) {
  struct Pair {
    Queue there;
    Queue back;
  };
  const auto send = [](Queue& queue, std::uint64_t number) {
    while (!queue.push(Item::make(number))) cpu_relax();
    queue.pushed_all();
  };
  const auto receive = [](Queue& queue, Checker& checker) {
    Item item{};
    while (!queue.pop(item)) {
    }
    checker.take(item);
  };
  return {std::move(name), [pair = std::make_shared<Pair>(), send, receive] {
            const auto client = [&] {
              Checker checker;
              for (std::uint64_t i = 0; i < round_trips_per_sample; ++i) {
                send(pair->there, i);
                receive(pair->back, checker);
              }
              checker.expect(round_trips_per_sample);
            };
            const auto server = [&] {
              Checker checker;
              for (std::uint64_t i = 0; i < round_trips_per_sample; ++i) {
                receive(pair->there, checker);
                send(pair->back, i);
              }
              checker.expect(round_trips_per_sample);
            };
            const PairTiming timing = run_pair(client, server);
            return Sample{timing.seconds * 1e9 / round_trips_per_sample, timing.preempted};
          }};
}

template <class Item>
std::vector<Case> throughput_cases() {
  std::vector<Case> cases;
  cases.push_back(single_case<Item, OursSingle<Item>>("lockstep single"));
  cases.push_back(single_case<Item, OursLazy<Item>>("lockstep lazy"));
  cases.push_back(single_case<Item, Article<Item>>("article single"));
  cases.push_back(single_case<Item, BoostSingle<Item>>("boost single"));
  cases.push_back(single_case<Item, Moodycamel<Item>>("moodycamel single"));
  for (const std::size_t batch : {16U, 64U, 256U}) {
    cases.push_back(batch_case<OursBatch<Item>>(fmt::format("lockstep batch {}", batch), batch));
    cases.push_back(batch_case<BoostBatch<Item>>(fmt::format("boost batch {}", batch), batch));
    if constexpr (std::is_same_v<Item, Line>) {
      cases.push_back(batch_case<OursFrames>(fmt::format("lockstep frames {}", batch), batch));
    }
  }
  return cases;
}

template <class Item>
std::vector<Case> round_trip_cases() {
  std::vector<Case> cases;
  cases.push_back(round_trip_case<Item, OursSingle<Item>>("lockstep single"));
  cases.push_back(round_trip_case<Item, OursLazy<Item>>("lockstep lazy, published"));
  cases.push_back(round_trip_case<Item, Flagged<Item>>("a number in each slot"));
  cases.push_back(round_trip_case<Item, Article<Item>>("article single"));
  cases.push_back(round_trip_case<Item, BoostSingle<Item>>("boost single"));
  cases.push_back(round_trip_case<Item, Moodycamel<Item>>("moodycamel single"));
  return cases;
}

template <Tricks tricks>
Case trick_case(std::string name) {
  return single_case<Word, WithTricks<Word, tricks>>(std::move(name));
}

std::vector<Case> trick_cases() {
  return {
      trick_case<Tricks{}>(all_tricks),
      trick_case<Tricks{.remembers = false}>("without remembering the other's position"),
      trick_case<Tricks{.apart = false}>("without keeping own apart from published"),
      trick_case<Tricks{.own_lines = false}>("without lines of their own"),
      trick_case<Tricks{.weak_orders = false}>("without acquire and release"),
      trick_case<Tricks{.lazy = false}>("without lazy publishing"),
      trick_case<Tricks{false, false, false, false, false}>("without any"),
  };
}

struct Section {
  std::string title;
  std::string unit;
  Better better;
  std::vector<Case> cases;
  std::function<std::string(const Series&)> verdict;
  double share_of_time;  ///< of all sections' together 1
};

std::vector<Section> sections() {
  const auto throughput = [](double goal) {
    return [goal](const Series& series) { return judge_throughput(series, goal); };
  };
  return {
      {"throughput, 8 B items", "million items/s", Better::higher, throughput_cases<Word>(), throughput(1.5), 0.3},
      {"throughput, 64 B items", "million items/s", Better::higher, throughput_cases<Line>(), throughput(1.15), 0.3},
      {"round trip, 8 B items", "ns", Better::lower, round_trip_cases<Word>(), judge_round_trips, 0.12},
      {"round trip, 64 B items", "ns", Better::lower, round_trip_cases<Line>(), judge_round_trips, 0.12},
      {"what each trick is worth, 8 B items", "million items/s", Better::higher, trick_cases(), worth_of_tricks, 0.16},
  };
}

int run(const Options& options) {
  if (allowed_cpus().size() < 2) {
    fmt::print(stderr, "bench_ring: needs two CPUs, and this process may run on {} only\n", allowed_cpus().size());
    return 2;
  }
  fmt::print("{}", describe_machine());
  const Results results(options.out, "ring");
  Table figures = figures_table();
  for (const Section& section : sections()) {
    const Series series = run_probed_rounds(section.cases, options.seconds * section.share_of_time);
    fmt::print("\n{} ({}), {} items of room\n{}{}{}", section.title, section.unit, capacity_items,
               describe_regimes(series), table_of(series, section.better).text(), section.verdict(series));
    add_figures(figures, series, section.better, section.title, section.unit);
    if (section.title.starts_with("throughput")) results.plot(section.title, batch_plot(section.title, series));
  }
  results.figures(figures);
  return 0;
}

}  // namespace
}  // namespace lockstep::bench

int main(int argc, char** argv) {
  return lockstep::bench::run(
      lockstep::bench::parse_options(argc, argv,
                                     "The single-producer ring beside Boost, readerwriterqueue and the article's ring. "
                                     "Figures hold for the regime they "
                                     "stand under; on a busy machine run it as `chrt -f 50 bench_ring`.",
                                     25));
}
