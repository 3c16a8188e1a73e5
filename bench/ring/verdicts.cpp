// SPDX-License-Identifier: Apache-2.0
#include "bench/ring/verdicts.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>
#include <utility>
#include <vector>

namespace lockstep::bench {
namespace {

constexpr std::array batches{16, 64, 256};

struct Goal {
  std::string ours;
  std::vector<std::string> peers;
  double at_least;
};

/// One line: the ratio of ours to the best of the peers.
std::string judge(const Series& series, const Goal& goal) {
  const auto ratio_in = [&](Regime regime) -> std::optional<double> {
    const auto ours = series.of(goal.ours).median(regime);
    std::optional<double> best_peer;
    for (const std::string& peer : goal.peers) {
      const auto median = series.of(peer).median(regime);
      if (!median) return std::nullopt;
      best_peer = std::max(best_peer.value_or(0), *median);
    }
    if (!ours) return std::nullopt;
    return *ours / *best_peer;
  };
  std::string names = fmt::format("  {} /", goal.ours);
  for (const std::string& peer : goal.peers) names += fmt::format("{} {}", names.ends_with('/') ? "" : ",", peer);
  if (const auto ratio = ratio_in(Regime::close)) {
    return fmt::format("{}: {:.2f}x, goal {:.2f}x in C: {}\n", names, *ratio, goal.at_least,
                       *ratio >= goal.at_least ? "reached" : "NOT reached");
  }
  const Regime seen = series.most_common();
  const auto ratio = ratio_in(seen);
  return fmt::format("{}: regime C was not met; {}\n", names,
                     ratio ? fmt::format("{:.2f}x in {}", *ratio, regime_name(seen)) : std::string("too few samples"));
}

/// C when every case has samples in it.
Regime judged_regime(const Series& series) {
  const bool all_close =
      std::ranges::none_of(series.outcomes, [](const Outcome& outcome) { return outcome.in(Regime::close).empty(); });
  return all_close ? Regime::close : series.most_common();
}

}  // namespace

std::string judge_throughput(const Series& series, double at_least) {
  std::string text = "goals, ratios of medians:\n";
  const std::vector<std::string> single_peers{"article single", "boost single", "moodycamel single"};
  text += judge(series, {"lockstep single", single_peers, at_least});
  text += judge(series, {"lockstep lazy", single_peers, at_least});
  for (const int batch : batches) {
    text += judge(series, {fmt::format("lockstep batch {}", batch), {fmt::format("boost batch {}", batch)}, at_least});
  }
  return text;
}

std::string judge_round_trips(const Series& series) {
  constexpr double goal = 1.9;
  const Regime regime = judged_regime(series);
  const auto floor = series.round_trip_ns(regime);
  if (!floor) return "round trip over the probe's: too few samples\n";
  std::string text = fmt::format(
      "round trip over the probe's {:.0f} ns in {}. Index rings hand over two lines each way, the item's and the\n"
      "position's; a ring with a number in each slot hands over one where both fit, but publishes every item:\n"
      "lockstep, whose agents hand over many frames at once, has none.\n",
      *floor, regime_name(regime));
  for (const Outcome& outcome : series.outcomes) {
    const auto median = outcome.median(regime);
    if (!median) continue;
    text += fmt::format("  {}: {:.2f}x", outcome.name, *median / *floor);
    if (outcome.name == "lockstep single")
      text += fmt::format(", goal at most {:.1f}x: {}", goal, *median <= goal * *floor ? "reached" : "NOT reached");
    text += '\n';
  }
  return text;
}

std::string worth_of_tricks(const Series& series) {
  const Regime regime = judged_regime(series);
  const auto all = series.of(all_tricks).median(regime);
  if (!all) return "what is left without a trick: too few samples\n";
  std::string text = fmt::format("what is left of the throughput in {}:\n", regime_name(regime));
  for (const Outcome& outcome : series.outcomes) {
    const auto median = outcome.median(regime);
    if (median && outcome.name != all_tricks) text += fmt::format("  {}: {:.2f}x\n", outcome.name, *median / *all);
  }
  return text;
}

Plot batch_plot(const std::string& title, const Series& series) {
  const Regime regime = judged_regime(series);
  Plot plot{.title = fmt::format("{}, regime {}", title, regime_name(regime)),
            .x_label = "items published at once",
            .y_label = "million items a second",
            .logarithmic_x = true,
            .lines = {}};
  for (const std::string queue : {"lockstep", "boost"}) {
    PlotLine line{.name = queue, .points = {}};
    const auto add = [&](int items, const std::string& name) {
      if (const auto median = series.of(name).median(regime)) line.points.emplace_back(items, *median);
    };
    add(1, fmt::format("{} single", queue));
    for (const int batch : batches) add(batch, fmt::format("{} batch {}", queue, batch));
    plot.lines.push_back(std::move(line));
  }
  for (const std::string queue : {"lockstep lazy", "article single", "moodycamel single"}) {
    if (const auto median = series.of(queue).median(regime))
      plot.lines.push_back({.name = queue, .points = {{1, *median}, {256, *median}}});
  }
  return plot;
}

}  // namespace lockstep::bench
