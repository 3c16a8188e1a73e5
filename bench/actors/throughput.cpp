// SPDX-License-Identifier: Apache-2.0
#include "bench/actors/throughput.hpp"

#include <fmt/format.h>

#include <array>
#include <memory>
#include <vector>

#include "bench/actors/in_process.hpp"
#include "bench/support/report.hpp"
#include "bench/support/rounds.hpp"

namespace lockstep::bench {

void measure_throughput(double seconds, Table& figures) {
  struct Shape {
    const char* name;
    std::uint64_t accounts;
    std::uint32_t interval;
    std::uint64_t sessions;
  };
  constexpr std::array shapes{Shape{"1,000 accounts, root every 1,024 messages", 1'000, 1024, 0},
                              Shape{"1,000 accounts, root every 1,024, 16 durable sessions", 1'000, 1024, 16},
                              Shape{"1,000 accounts, no roots", 1'000, 1U << 30, 0},
                              Shape{"1,000 accounts, no roots, 16 durable sessions", 1'000, 1U << 30, 16},
                              Shape{"1,000,000 accounts, root every 1,024 messages", 1'000'000, 1024, 0},
                              Shape{"1,000,000 accounts, root every 65,536 messages", 1'000'000, 65'536, 0}};
  std::vector<std::unique_ptr<InProcess>> nodes;
  std::vector<Case> cases;
  for (const Shape& shape : shapes) {
    nodes.push_back(std::make_unique<InProcess>(shape.accounts, shape.interval, shape.sessions));
    cases.push_back({shape.name, [node = nodes.back().get()] { return Sample{1e3 / node->sample(), false}; }});
  }
  const Series series = run_plain_rounds(cases, seconds);
  fmt::print("\nmessage to actor to reply, one thread (million messages/s)\n{}",
             table_of(series, Better::higher).text());
  const double best = series.outcomes.front().median(Regime::one_cpu).value_or(0);
  fmt::print("goal: 10 million/s with roots on for a hot set; median {:.2f}: {}\n", best,
             best >= 10 ? "reached" : "NOT reached");
  add_figures(figures, series, Better::higher, "in-process", "million messages/s");
}

}  // namespace lockstep::bench
