// SPDX-License-Identifier: Apache-2.0
#include "bench/io_profiles/measurement.hpp"

#include <fmt/format.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>

#include "bench/io_profiles/server.hpp"
#include "bench/support/cpu.hpp"

namespace lockstep::bench {
namespace {

constexpr double warm_up_seconds = 0.1;
constexpr double timed_seconds = 0.4;
constexpr double counted_seconds = 0.1;

ServerPlan plan_of(Profile profile, const Load& load, const Conditions& conditions) {
  ServerPlan plan;
  plan.profile = profile;
  plan.connections = static_cast<std::uint32_t>(load.connections);
  plan.work_rounds = conditions.work_rounds_per_us * load.work_ns / 1000;
  const auto& cpus = conditions.placement.workers;
  plan.workers = static_cast<std::uint32_t>(std::min<std::size_t>(cpus.size(), ServerPlan::most_workers));
  std::copy_n(cpus.begin(), plan.workers, plan.worker_cpus.begin());
  plan.submitter_cpu = conditions.placement.submitter.value_or(-1);
  return plan;
}

double own_cpu_seconds() {
  rusage used{};
  ::getrusage(RUSAGE_SELF, &used);
  const auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) / 1e6;
  };
  return seconds(used.ru_utime) + seconds(used.ru_stime);
}

struct Snapshot {
  ServerUsage server;
  MachineTotals machine;
  double client_cpu_seconds;
};

Snapshot take_snapshot(ServerProcess& server) {
  return {server.usage(), read_machine_totals(), own_cpu_seconds()};
}

/// The server must have answered exactly what the client asked.
void check_requests(Profile profile, const Window& window, std::uint64_t served) {
  if (served == window.requests && served > 0) return;
  fmt::print(stderr, "bench_io_profiles: {}: {} requests got a reply, but the server served {}\n",
             profile_name(profile), window.requests, served);
  std::exit(1);
}

void fill_timed(Measurement& result, const Window& window, const Snapshot& before, const Snapshot& after) {
  const auto requests = static_cast<double>(window.requests);
  const auto per_1000 = [requests](auto from, auto to) { return static_cast<double>(to - from) * 1000 / requests; };
  const auto us = [&](double percent) { return static_cast<double>(window.latencies_ns.percentile(percent)) / 1000; };
  result.requests_per_s = requests / window.seconds;
  result.p50_us = us(50);
  result.p99_us = us(99);
  result.p999_us = us(99.9);
  result.latencies_ns = window.latencies_ns;
  result.voluntary_per_1000 = per_1000(before.server.voluntary_switches, after.server.voluntary_switches);
  result.involuntary_per_1000 = per_1000(before.server.involuntary_switches, after.server.involuntary_switches);
  result.res_per_1000 = per_1000(before.machine.reschedule_interrupts, after.machine.reschedule_interrupts);
  result.cal_per_1000 = per_1000(before.machine.call_interrupts, after.machine.call_interrupts);
  const double server_seconds = static_cast<double>(after.server.cpu_ns - before.server.cpu_ns) / 1e9;
  result.server_cpu_us = server_seconds * 1e6 / requests;
  const double ours = server_seconds + after.client_cpu_seconds - before.client_cpu_seconds;
  const double all = std::max(0.01, after.machine.all_seconds - before.machine.all_seconds);
  // The machine's figures move in steps of 10 ms, ours do not.
  result.foreign_share = std::max(0.0, after.machine.busy_seconds - before.machine.busy_seconds - ours) / all;
  result.stolen_share = (after.machine.stolen_seconds - before.machine.stolen_seconds) / all;
}

void fill_counted(Measurement& result, const Window& window, const EventCounts& events, std::uint64_t own_count) {
  const auto requests = static_cast<double>(window.requests);
  const auto per_request = [requests](std::optional<std::uint64_t> count, double scale) {
    return count ? std::optional(static_cast<double>(*count) * scale / requests) : std::nullopt;
  };
  result.ipis_per_1000 = per_request(events.ipis, 1000);
  result.io_uring_ipis_per_1000 = per_request(events.io_uring_ipis, 1000);
  result.l1d_misses = per_request(events.l1d_misses, 1);
  result.system_calls = per_request(events.system_calls, 1).value_or(static_cast<double>(own_count) / requests);
}

}  // namespace

Measurement measure(Profile profile, const Load& load, const Conditions& conditions) {
  Measurement result;
  if (allowed_cpus().size() >= 2) result.regime = probe_regime().regime;
  ServerProcess server(plan_of(profile, load, conditions));
  LoadClient client(server.port(), load);
  server.wait_until_ready();
  static_cast<void>(client.run(warm_up_seconds));

  const Snapshot before = take_snapshot(server);
  const Window timed = client.run(timed_seconds);
  const Snapshot after = take_snapshot(server);
  check_requests(profile, timed, after.server.requests - before.server.requests);
  fill_timed(result, timed, before, after);

  const std::array clients{::getpid()};
  conditions.counters->start(threads_of(server.pid()), clients);
  const Window counted = client.run(counted_seconds);
  const EventCounts events = conditions.counters->stop();
  const ServerUsage end = server.usage();
  check_requests(profile, counted, end.requests - after.server.requests);
  fill_counted(result, counted, events, end.system_calls - after.server.system_calls);
  return result;
}

}  // namespace lockstep::bench
