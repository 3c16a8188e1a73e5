// SPDX-License-Identifier: Apache-2.0
#include "bench/replay/checkpoint_cost.hpp"

#include <fmt/format.h>

#include <array>
#include <cstdint>
#include <cstring>
#include <memory>
#include <set>
#include <vector>

#include "base/clock.hpp"
#include "bench/actors/in_process.hpp"
#include "bench/support/need.hpp"
#include "bench/support/report.hpp"
#include "bench/support/rounds.hpp"
#include "runtime/memory/shard_memory.hpp"

namespace lockstep::bench {
namespace {

constexpr std::array<std::uint64_t, 4> state_mib{1, 16, 64, 256};
/// Of the pages, in parts per thousand.
constexpr std::array<std::uint64_t, 4> dirty_per_mille{1, 10, 100, 1000};

/// A state in arenas of at most 16 MiB, all of it in use.
class State {
 public:
  explicit State(std::uint64_t mib)
      : log_(1U << 16U), barrier_(log_), memory_(need(ShardMemory::make((2 * mib + 2) << 20U, barrier_))) {
    const std::uint64_t arena_mib = std::min<std::uint64_t>(mib, 16);
    for (std::uint64_t i = 0; i < mib / arena_mib; ++i) {
      Arena& arena = memory_->arena(need(memory_->create_arena((arena_mib << 20U) + (1U << 20U))));
      const auto bytes = static_cast<std::uint32_t>(arena_mib << 20U);
      blocks_.push_back({&arena, arena.allocate(bytes)});
      barrier_.commit();
      for (std::uint32_t at = 0; at < bytes; at += page_bytes) store(blocks_.back(), at);
    }
    pages_ = mib << 20U >> 12U;
    digest_ = memory_->digest();
  }

  /// Changes a word in `count` pages, spread evenly; then the checkpoint. Nanoseconds of the latter.
  double checkpoint(std::uint64_t count) {
    const std::uint64_t pages_of_block = pages_ / blocks_.size();
    for (std::uint64_t i = 0; i < count; ++i) {
      const std::uint64_t page = i * pages_ / count;
      store(blocks_[page / pages_of_block], static_cast<std::uint32_t>(page % pages_of_block * page_bytes));
    }
    const std::int64_t started_ns = clock_.steady_ns();
    const Digest digest = memory_->digest();
    const std::int64_t took_ns = clock_.steady_ns() - started_ns;
    if (digest == digest_) give_up("a state that changed has the digest that it had");
    digest_ = digest;
    return static_cast<double>(took_ns);
  }

  [[nodiscard]] std::uint64_t pages() const { return pages_; }

 private:
  struct Block {
    Arena* arena;
    Link link;
  };

  /// A step of its own, as a handler is.
  void store(const Block& block, std::uint32_t at) {
    std::byte* const word = block.arena->at(block.link) + at;
    ++stored_;
    block.arena->before_write(word, sizeof stored_);
    std::memcpy(word, &stored_, sizeof stored_);
    barrier_.commit();
  }

  SystemClock clock_;
  std::vector<std::byte> log_;
  WriteBarrier barrier_;
  std::unique_ptr<ShardMemory> memory_;
  std::vector<Block> blocks_;
  std::uint64_t pages_ = 0;
  std::uint64_t stored_ = 0;
  Digest digest_;
};

struct Shape {
  std::uint64_t mib;
  std::uint64_t per_mille;
  std::uint64_t dirty_pages;
};

void measure_states(double seconds, const Results& results, Table& figures) {
  std::vector<Shape> shapes;
  std::vector<Case> cases;
  for (const std::uint64_t mib : state_mib) {
    const auto state = std::make_shared<State>(mib);
    for (const std::uint64_t per_mille : dirty_per_mille) {
      const std::uint64_t dirty = std::max<std::uint64_t>(1, state->pages() * per_mille / 1000);
      shapes.push_back({mib, per_mille, dirty});
      cases.push_back({fmt::format("{} MiB, {} % dirty", mib, static_cast<double>(per_mille) / 10),
                       [state, dirty] { return Sample{state->checkpoint(dirty) / 1000, false}; }});
    }
  }
  const Series series = run_plain_rounds(cases, seconds);
  add_figures(figures, series, Better::lower, "checkpoint", "us");
  Table table({"state, share of pages changed", "us, median", "best", "ns a changed page", "GiB/s", "n"});
  Plot plot{.title = "a checkpoint by changed pages",
            .x_label = "changed pages",
            .y_label = "microseconds",
            .logarithmic_x = true,
            .logarithmic_y = true,
            .lines = {}};
  for (std::size_t i = 0; i < shapes.size(); ++i) {
    const Outcome& outcome = series.outcomes[i];
    const auto median = outcome.median(Regime::one_cpu);
    if (!median) continue;
    const double ns_a_page = *median * 1000 / static_cast<double>(shapes[i].dirty_pages);
    table.add_row({outcome.name, fmt::format("{:.1f}", *median),
                   fmt::format("{:.1f}", *outcome.best(Regime::one_cpu, Better::lower)),
                   fmt::format("{:.0f}", ns_a_page),
                   fmt::format("{:.1f}", static_cast<double>(page_bytes) / ns_a_page * 1e9 / (1 << 30)),
                   fmt::format("{}", outcome.in(Regime::one_cpu).size())});
    if (i % dirty_per_mille.size() == 0)
      plot.lines.push_back({.name = fmt::format("{} MiB", shapes[i].mib), .points = {}});
    plot.lines.back().points.emplace_back(shapes[i].dirty_pages, *median);
  }
  fmt::print("\nthe root of a state, one shard, one thread\n{}", table.text());
  results.plot("checkpoint", plot);
}

/// The same messages with roots and without, in turn.
void measure_share(double seconds, Table& figures) {
  constexpr double goal_percent = 2;
  struct Load {
    const char* name;
    std::uint64_t accounts;
    std::uint32_t interval;
  };
  constexpr std::array loads{Load{"1,000 accounts, root every 1,024 messages", 1'000, 1024},
                             Load{"1,000 accounts, no roots", 1'000, 1U << 30U},
                             Load{"1,000,000 accounts, root every 65,536 messages", 1'000'000, 65'536},
                             Load{"1,000,000 accounts, no roots", 1'000'000, 1U << 30U}};
  std::vector<std::unique_ptr<InProcess>> nodes;
  std::vector<Case> cases;
  for (const Load& load : loads) {
    nodes.push_back(std::make_unique<InProcess>(load.accounts, load.interval, 0));
    cases.push_back({load.name, [node = nodes.back().get()] { return Sample{node->sample(), false}; }});
  }
  const Series series = run_plain_rounds(cases, seconds);
  add_figures(figures, series, Better::lower, "a message with and without roots", "ns");
  fmt::print("\na message of the bank, in one process and one thread (ns)\n{}", table_of(series, Better::lower).text());
  for (std::size_t i = 0; i < loads.size(); i += 2) {
    const auto with = series.outcomes[i].median(Regime::one_cpu);
    const auto without = series.outcomes[i + 1].median(Regime::one_cpu);
    if (!with || !without) continue;
    const double percent = 100 * (*with - *without) / *with;
    fmt::print("{}: {:.1f} % of a message", loads[i].name, percent);
    if (i == 0)
      fmt::print(", goal at most {} %: {}", goal_percent, percent <= goal_percent ? "reached" : "NOT reached");
    fmt::print("\n");
  }
}

}  // namespace

void measure_checkpoints(double seconds, const Results& results, Table& figures) {
  measure_states(seconds / 2, results, figures);
  measure_share(seconds / 2, figures);
}

}  // namespace lockstep::bench
