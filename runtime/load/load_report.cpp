// SPDX-License-Identifier: Apache-2.0
#include "runtime/load/load_report.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <nlohmann/json.hpp>

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
  if (result.refused + result.trapped + result.lost != 0)
    text += fmt::format("{} refused, {} trapped, {} lost; the first: {}\n", result.refused, result.trapped, result.lost,
                        result.first_error);
  return text;
}

std::string load_json(const LoadOptions& options, const LoadResult& result) {
  nlohmann::ordered_json latency;
  for (const Percentile& p : percentiles) latency[p.name] = result.latency_ns.percentile(p.percent);
  latency["max"] = result.latency_ns.max();
  latency["mean"] = result.latency_ns.mean();
  const nlohmann::ordered_json report{{"planned_rate", options.rate},       {"rate", result.rate()},
                                      {"connections", options.connections}, {"depth", options.depth},
                                      {"threads", options.threads},         {"sent", result.sent},
                                      {"answered", result.answered},        {"refused", result.refused},
                                      {"trapped", result.trapped},          {"lost", result.lost},
                                      {"elapsed_ns", result.elapsed_ns},    {"latency_ns", latency},
                                      {"first_error", result.first_error}};
  return report.dump();
}

std::function<void(const LoadProgress&)> load_progress_line() {
  if (::isatty(STDERR_FILENO) == 0) return {};
  return [](const LoadProgress& progress) {
    const double done = static_cast<double>(progress.answered);
    std::fputs(fmt::format("\r{:5.1f} %  {} of {}  {:.0f}/s \x1b[K",
                           100 * done / static_cast<double>(std::max<std::uint64_t>(progress.requests, 1)),
                           progress.answered, progress.requests, done / std::max(progress.seconds, 1e-3))
                   .c_str(),
               stderr);
  };
}

void end_load_progress_line() {
  if (::isatty(STDERR_FILENO) != 0) std::fputs("\r\x1b[K", stderr);
}

}  // namespace lockstep
