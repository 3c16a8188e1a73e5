// SPDX-License-Identifier: Apache-2.0
#include "runtime/load/load_report.hpp"

#include <fmt/format.h>

#include <array>
#include <nlohmann/json.hpp>

#include "runtime/json_text.hpp"

namespace lockstep {
namespace {

struct Percentile {
  const char* name;
  double percent;
};
constexpr std::array<Percentile, 5> percentiles{
    {{"p50", 50}, {"p90", 90}, {"p99", 99}, {"p99.9", 99.9}, {"p99.99", 99.99}}};

double microseconds(std::uint64_t ns) {
  return static_cast<double>(ns) / 1e3;
}

}  // namespace

std::string load_text(const LoadOptions& options, const LoadResult& result) {
  std::string text =
      fmt::format("{} answers at {:.0f}/s over {} connections, ", result.answered, result.rate(), options.connections);
  text += options.rate > 0 ? fmt::format("planned at {:.0f}/s\n", options.rate)
                           : fmt::format("closed loop, {} in flight each\n", options.depth);
  text += "latency from plan, us:";
  for (const Percentile& p : percentiles)
    text += fmt::format(" {} {:.1f} ", p.name, microseconds(result.latency_ns.percentile(p.percent)));
  text += fmt::format(" max {:.1f}\n", microseconds(result.latency_ns.max()));
  if (result.refused + result.trapped != 0)
    text += fmt::format("{} refused, {} trapped; the first: {}\n", result.refused, result.trapped, result.first_error);
  if (!result.complete())
    text += fmt::format(
        "INCOMPLETE: of {} requests {} were answered, {} refused, {} trapped, {} lost and {} never sent: {}\n",
        options.requests, result.answered, result.refused, result.trapped, result.lost, result.unsent, result.ended_by);
  return text;
}

std::string load_json(const LoadOptions& options, const LoadResult& result) {
  nlohmann::ordered_json latency;
  for (const Percentile& p : percentiles) latency[p.name] = result.latency_ns.percentile(p.percent);
  latency["max"] = result.latency_ns.max();
  latency["mean"] = result.latency_ns.mean();
  const nlohmann::ordered_json report{{"schema", "lockstep.bench/1"},
                                      {"requests", options.requests},
                                      {"planned_rate", options.rate},
                                      {"rate", result.rate()},
                                      {"connections", options.connections},
                                      {"depth", options.depth},
                                      {"threads", options.threads},
                                      {"sent", result.sent},
                                      {"answered", result.answered},
                                      {"unsent", result.unsent},
                                      {"refused", result.refused},
                                      {"trapped", result.trapped},
                                      {"lost", result.lost},
                                      {"elapsed_ns", result.elapsed_ns},
                                      {"latency_ns", latency},
                                      {"first_error", result.first_error},
                                      {"ended_by", result.ended_by}};
  return json_text(report);
}

}  // namespace lockstep
