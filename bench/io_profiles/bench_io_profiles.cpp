// SPDX-License-Identifier: Apache-2.0
// What do the ways of doing network input and output cost? One small service behind epoll and behind io_uring set up in
// different ways, under the same loads; the profiles are those of an article on SINGLE_ISSUER and DEFER_TASKRUN, and
// two more. Every reply is compared with what was asked.

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <string_view>
#include <utility>
#include <vector>

#include "bench/io_profiles/connection.hpp"
#include "bench/io_profiles/measurement.hpp"
#include "bench/io_profiles/report.hpp"
#include "bench/io_profiles/server.hpp"
#include "bench/support/cpu.hpp"
#include "bench/support/options.hpp"
#include "bench/support/report.hpp"
#include "bench/support/results.hpp"
#include "bench/support/rounds.hpp"

namespace lockstep::bench {
namespace {

const std::vector<Load> loads{
    {.connections = 32, .depth = 1},
    {.connections = 32, .depth = 8, .work_ns = 1000},
    {.connections = 32, .depth = 1, .rate = 20'000},
    {.connections = 32, .depth = 8, .work_ns = 1000, .rate = 100'000},
};

/// SQPOLL's thread spins: without a CPU of its own it takes one from the workers or the client.
std::vector<Profile> profiles_for(const Placement& placement, bool force_sqpoll) {
  std::vector<Profile> profiles(all_profiles.begin(), all_profiles.end());
  if (placement.submitter || force_sqpoll) return profiles;
  std::erase(profiles, Profile::sqpoll);
  fmt::print(
      "{} is left out: its thread spins, and of {} CPUs none is to spare beside {} workers and the client; "
      "--force-sqpoll measures it all the same\n",
      profile_name(Profile::sqpoll), allowed_cpus().size(), placement.workers.size());
  return profiles;
}

std::string describe(const Placement& placement) {
  std::string text = "workers on CPUs";
  for (const int cpu : placement.workers) text += fmt::format(" {}", cpu);
  text += placement.client ? fmt::format(", client on {}", *placement.client) : ", client wherever there is room";
  if (placement.submitter) text += fmt::format(", SQPOLL on {}", *placement.submitter);
  return text + '\n';
}

std::vector<LoadSamples> measure_all(const std::vector<Profile>& profiles, const Conditions& conditions,
                                     double seconds) {
  std::vector<LoadSamples> all;
  for (const Load& load : loads) {
    all.push_back({load, {}});
    for (const Profile profile : profiles) all.back().profiles.push_back({profile, load.rate == 0, {}});
  }
  std::vector<Case> cases;
  for (LoadSamples& each : all) {
    for (Samples& samples : each.profiles) {
      cases.push_back({std::string(profile_name(samples.profile)), [&samples, &each, &conditions] {
                         samples.rounds.push_back(measure(samples.profile, each.load, conditions));
                         return Sample{samples.rounds.back().requests_per_s, false};
                       }});
    }
  }
  static_cast<void>(run_plain_rounds(cases, seconds));
  return all;
}

int run(const Options& options, bool force_sqpoll) {
  const Placement placement = place(allowed_cpus());
  EventCounters counters;
  fmt::print("{}{}{}", describe_machine(), counters.describe(), describe(placement));
  const std::vector<Profile> profiles = profiles_for(placement, force_sqpoll);
  const Conditions conditions{placement, calibrate_work(1000), &counters};
  if (placement.client) pin_to_cpu(*placement.client);

  const std::vector<LoadSamples> all = measure_all(profiles, conditions, options.seconds);
  const Results results(options.out, "io-profiles");
  for (const LoadSamples& each : all) {
    if (std::ranges::all_of(each.profiles, [](const Samples& samples) { return samples.rounds.empty(); })) {
      fmt::print("\n{}: not reached in {} s\n", load_name(each.load), options.seconds);
      continue;
    }
    fmt::print("\n{}\n{}{}", speed_table(each).text(), cost_table(each).text(), describe_conditions(each));
    for (const Samples& samples : each.profiles) {
      if (!samples.rounds.empty())
        results.distribution(fmt::format("{} {}", load_name(each.load), profile_name(samples.profile)),
                             latencies_of(samples));
    }
    results.plot(load_name(each.load), latency_plot(each));
  }
  fmt::print(
      "\na load: connections x requests under way on each; flat out the latency counts from the sending, at a "
      "rate from the planned time\n");
  results.figures(figures_of(all));
  return 0;
}

}  // namespace
}  // namespace lockstep::bench

int main(int argc, char** argv) {
  using namespace lockstep::bench;
  if (argc == 3 && std::string_view(argv[1]) == serve_option) return serve(std::atoi(argv[2]));
  bool force_sqpoll = false;
  const Options options = parse_options(
      argc, argv,
      "A request/response service by epoll, by a shared io_uring, and by a ring a thread with SINGLE_ISSUER, "
      "DEFER_TASKRUN, SEND_ZC and SQPOLL: throughput, latency, interrupts, switches, system calls.",
      60, {{"--force-sqpoll", "Measure SQPOLL without a CPU to spare for its thread", &force_sqpoll}});
  return run(options, force_sqpoll);
}
