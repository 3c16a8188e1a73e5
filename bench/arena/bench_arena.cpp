// SPDX-License-Identifier: Apache-2.0
// What does an allocation from the tick arena cost, beside a bare store, a std::pmr buffer, and malloc as glibc,
// jemalloc and mimalloc have it? One thread takes blocks of 64 bytes, stores one word in each, and gives all back after
// each tick; ns per block, giving back included.

#include <fmt/format.h>
#include <sys/resource.h>

#include <array>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <memory_resource>
#include <set>
#include <vector>

#include "bench/arena/peer_allocators.hpp"
#include "bench/support/cpu.hpp"
#include "bench/support/options.hpp"
#include "bench/support/report.hpp"
#include "bench/support/results.hpp"
#include "bench/support/rounds.hpp"
#include "bench/support/table.hpp"
#include "runtime/memory/tick_arena.hpp"

namespace lockstep::bench {
namespace {

constexpr std::uint32_t block_bytes = 64;
constexpr std::uint32_t blocks_per_sample = 1U << 20;

/// One buffer, touched, for as many blocks as a tick takes.
class Buffer {
 public:
  explicit Buffer(std::uint32_t blocks) : blocks_(blocks) {}
  [[nodiscard]] std::span<std::byte> span() { return {blocks_.front().bytes, blocks_.size() * block_bytes}; }

 private:
  struct alignas(64) Block {
    std::byte bytes[block_bytes];
  };
  std::vector<Block> blocks_;
};

// Each source of blocks: take() gives the next one, end_tick() has all of them back.

/// The floor: no allocator at all, the next place is known.
class BareStore {
 public:
  explicit BareStore(std::uint32_t blocks) : buffer_(blocks), next_(buffer_.span().data()) {}
  void* take() {
    void* const block = next_;
    next_ += block_bytes;
    return block;
  }
  void end_tick() { next_ = buffer_.span().data(); }

 private:
  Buffer buffer_;
  std::byte* next_;
};

class Tick {
 public:
  explicit Tick(std::uint32_t blocks) : buffer_(blocks), arena_(buffer_.span()) {}
  void* take() { return arena_.allocate_bytes(block_bytes); }
  void end_tick() { arena_.purge(); }

 private:
  Buffer buffer_;
  TickArena arena_;
};

/// A fixed buffer and no fall-back to the heap; called by its own type, so that the compiler may see through it.
class Monotonic {
 public:
  explicit Monotonic(std::uint32_t blocks)
      : buffer_(blocks), resource_(buffer_.span().data(), buffer_.span().size(), std::pmr::null_memory_resource()) {}
  void* take() { return resource_.allocate(block_bytes, 16); }
  void end_tick() { resource_.release(); }

 protected:
  Buffer buffer_;
  std::pmr::monotonic_buffer_resource resource_;
};

/// The same as std::pmr's containers see it: behind a pointer whose type the compiler does not know.
class VirtualMonotonic : public Monotonic {
 public:
  explicit VirtualMonotonic(std::uint32_t blocks) : Monotonic(blocks), hidden_(&resource_) {
    asm volatile("" : "+r"(hidden_));
  }
  void* take() { return hidden_->allocate(block_bytes, 16); }

 private:
  std::pmr::memory_resource* hidden_;
};

/// An allocator that wants every block back.
class Heap {
 public:
  Heap(std::uint32_t blocks, const HeapFunctions& functions) : functions_(functions), taken_(blocks) {}
  void* take() { return taken_[count_++] = functions_.allocate(block_bytes); }
  void end_tick() {
    for (std::size_t i = 0; i < count_; ++i) functions_.free(taken_[i]);
    count_ = 0;
  }

 private:
  HeapFunctions functions_;
  std::vector<void*> taken_;
  std::size_t count_ = 0;
};

/// The store that every case pays; volatile so that the compiler leaves it in.
void store(void* block, std::uint64_t value) {
  *static_cast<volatile std::uint64_t*>(block) = value;
}

/// Ends the program when two blocks of a tick overlap or lose what was stored.
template <class Source>
void check(Source& source, std::uint32_t blocks_per_tick) {
  std::vector<std::uint64_t*> taken;
  for (std::uint32_t i = 0; i < blocks_per_tick; ++i) {
    taken.push_back(static_cast<std::uint64_t*>(source.take()));
    if (taken.back() == nullptr) break;
    store(taken.back(), i);
  }
  std::uint64_t sum = 0;
  for (const std::uint64_t* block : taken) sum += block == nullptr ? 0 : *block;
  source.end_tick();
  if (sum == std::uint64_t{blocks_per_tick} * (blocks_per_tick - 1) / 2 &&
      std::set(taken.begin(), taken.end()).size() == blocks_per_tick) {
    return;
  }
  std::fprintf(stderr, "bench_arena: an allocator gave a block twice or none\n");
  std::exit(1);
}

/// A function of its own, so that each source gets the same loop whatever surrounds it.
template <class Source>
[[gnu::noinline]] void run_ticks(Source& source, std::uint32_t blocks_per_tick) {
  for (std::uint32_t taken = 0; taken < blocks_per_sample; taken += blocks_per_tick) {
    for (std::uint32_t i = 0; i < blocks_per_tick; ++i) store(source.take(), i);
    source.end_tick();
  }
}

long involuntary_switches() {
  rusage usage{};
  getrusage(RUSAGE_THREAD, &usage);
  return usage.ru_nivcsw;
}

template <class Source, class... Args>
Case arena_case(std::string name, std::uint32_t blocks_per_tick, const Args&... args) {
  auto source = std::make_shared<Source>(blocks_per_tick, args...);
  check(*source, blocks_per_tick);
  return {std::move(name), [source, blocks_per_tick] {
            const long switches = involuntary_switches();
            const auto start = std::chrono::steady_clock::now();
            run_ticks(*source, blocks_per_tick);
            const std::chrono::duration<double, std::nano> took = std::chrono::steady_clock::now() - start;
            return Sample{took.count() / blocks_per_sample, involuntary_switches() != switches};
          }};
}

std::vector<Case> cases(std::uint32_t blocks_per_tick) {
  std::vector<Case> all;
  all.push_back(arena_case<BareStore>("bare store", blocks_per_tick));
  all.push_back(arena_case<Tick>("lockstep tick arena", blocks_per_tick));
  all.push_back(arena_case<Monotonic>("std::pmr monotonic, devirtualised", blocks_per_tick));
  all.push_back(arena_case<VirtualMonotonic>("std::pmr monotonic, virtual", blocks_per_tick));
  all.push_back(arena_case<Heap>("glibc malloc and free", blocks_per_tick, glibc_malloc()));
  all.push_back(arena_case<Heap>("jemalloc", blocks_per_tick, jemalloc()));
  all.push_back(arena_case<Heap>("mimalloc", blocks_per_tick, mimalloc()));
  return all;
}

std::string judge(const Series& series) {
  constexpr double goal = 1.6;
  const auto ours = series.of("lockstep tick arena").median(Regime::one_cpu);
  const auto floor = series.of("bare store").median(Regime::one_cpu);
  if (!ours || !floor) return "goal: too few samples\n";
  const double ratio = *ours / *floor;
  return fmt::format("goal: tick arena / bare store {:.2f}x, at most {:.1f}x: {}\n", ratio, goal,
                     ratio <= goal ? "reached" : "NOT reached");
}

/// A point to each case's line.
void add_points(Plot& plot, const Series& series, std::uint32_t blocks_per_tick) {
  for (std::size_t i = 0; i < series.outcomes.size(); ++i) {
    const Outcome& outcome = series.outcomes[i];
    if (plot.lines.size() == i) plot.lines.push_back({.name = outcome.name, .points = {}});
    if (const auto median = outcome.median(Regime::one_cpu))
      plot.lines[i].points.emplace_back(blocks_per_tick, *median);
  }
}

int run(const Options& options) {
  fmt::print("{}", describe_machine());
  if (!allowed_cpus().empty()) pin_to_cpu(allowed_cpus().front());
  Table figures = figures_table();
  constexpr std::array ticks{64U, 512U, 4096U};
  Plot by_tick{.title = "allocation of 64 B, giving back included",
               .x_label = "blocks a tick",
               .y_label = "ns",
               .logarithmic_x = true,
               .logarithmic_y = true,
               .lines = {}};
  for (const std::uint32_t blocks_per_tick : ticks) {
    const std::vector<Case> all = cases(blocks_per_tick);
    const Series series = run_plain_rounds(all, options.seconds / ticks.size());
    const std::string title = fmt::format("allocation of {} B, {} a tick", block_bytes, blocks_per_tick);
    fmt::print("\n{} (ns)\n{}{}", title, table_of(series, Better::lower).text(), judge(series));
    add_figures(figures, series, Better::lower, title, "ns");
    add_points(by_tick, series, blocks_per_tick);
  }
  const Results results(options.out, "arena");
  results.figures(figures);
  results.plot("ticks", by_tick);
  return 0;
}

}  // namespace
}  // namespace lockstep::bench

int main(int argc, char** argv) {
  return lockstep::bench::run(
      lockstep::bench::parse_options(argc, argv,
                                     "The tick arena beside a bare store, std::pmr::monotonic_buffer_resource on a "
                                     "fixed buffer, and malloc and free of "
                                     "glibc, jemalloc and mimalloc.",
                                     12));
}
