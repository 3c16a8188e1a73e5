// SPDX-License-Identifier: Apache-2.0
// Message → actor → reply within one process: what a message costs, how long it takes beside other runtimes as the load
// rises, and how the rate grows with concurrency. No network, no disk.

#include <fmt/format.h>

#include <cstdio>

#include "bench/actors/latency.hpp"
#include "bench/actors/scaling.hpp"
#include "bench/actors/throughput.hpp"
#include "bench/support/cpu.hpp"
#include "bench/support/options.hpp"
#include "bench/support/report.hpp"
#include "bench/support/results.hpp"

namespace lockstep::bench {
namespace {

int run(const Options& options) {
  if (allowed_cpus().size() < 2) {
    fmt::print(stderr, "bench_actors: needs two CPUs, and this process may run on {} only\n", allowed_cpus().size());
    return 2;
  }
  const Results results(options.out, "actors");
  Table figures = figures_table();
  fmt::print("{}", describe_machine());
  measure_throughput(options.seconds * 0.15, figures);
  compare_latencies(options.seconds * 0.7, results, figures);
  measure_scaling(options.seconds * 0.15, results, figures);
  results.figures(figures);
  return 0;
}

}  // namespace
}  // namespace lockstep::bench

int main(int argc, char** argv) {
  return lockstep::bench::run(lockstep::bench::parse_options(
      argc, argv,
      "Message to actor to reply in one process: the cost of a message in one thread; latency in an open loop beside a "
      "mutex-and-condvar pool, oneTBB and CAF; the universal scalability law. On a busy machine run it as `chrt -f 50 "
      "bench_actors`.",
      90));
}
