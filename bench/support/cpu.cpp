// SPDX-License-Identifier: Apache-2.0
#include "bench/support/cpu.hpp"

#include <pthread.h>
#include <sched.h>
#include <sys/resource.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <thread>

#include "base/assert.hpp"
#include "base/cpu_relax.hpp"

namespace lockstep::bench {

namespace {

std::vector<int> read_allowed_cpus() {
  cpu_set_t set;
  CPU_ZERO(&set);
  std::vector<int> cpus;
  if (sched_getaffinity(0, sizeof set, &set) != 0) return cpus;
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (CPU_ISSET(static_cast<std::size_t>(cpu), &set)) cpus.push_back(cpu);
  }
  return cpus;
}

long involuntary_switches() {
  rusage usage{};
  getrusage(RUSAGE_THREAD, &usage);
  return usage.ru_nivcsw;
}

}  // namespace

const std::vector<int>& allowed_cpus() {
  static const std::vector<int> cpus = read_allowed_cpus();
  return cpus;
}

bool pin_to_cpu(int cpu) {
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(static_cast<std::size_t>(cpu), &set);
  return pthread_setaffinity_np(pthread_self(), sizeof set, &set) == 0;
}

Spinner::Spinner(int cpu)
    : thread_([this, cpu] {
        const sched_param ordinary{};
        pthread_setschedparam(pthread_self(), SCHED_OTHER, &ordinary);
        pin_to_cpu(cpu);
        while (!stop_.load(std::memory_order_relaxed)) cpu_relax();
      }) {}

Spinner::~Spinner() {
  stop_.store(true, std::memory_order_relaxed);
  thread_.join();
}

PairTiming run_pair(const std::function<void()>& first, const std::function<void()>& second) {
  LOCKSTEP_ASSERT(allowed_cpus().size() >= 2, "a pair needs two CPUs; main() checks for them");
  using clock = std::chrono::steady_clock;
  std::atomic<int> ready{0};
  std::atomic<bool> preempted{false};
  clock::time_point started[2];
  clock::time_point ended[2];
  const auto side = [&](std::size_t index, const std::function<void()>& work) {
    pin_to_cpu(allowed_cpus()[index]);
    const long switches_before = involuntary_switches();
    ready.fetch_add(1, std::memory_order_acq_rel);  // pairs with the load in the other thread's wait
    while (ready.load(std::memory_order_acquire) != 2) cpu_relax();
    started[index] = clock::now();
    work();
    ended[index] = clock::now();
    if (involuntary_switches() != switches_before) preempted.store(true, std::memory_order_relaxed);  // read after join
  };
  std::thread other(side, 1, std::cref(second));
  std::thread one(side, 0, std::cref(first));
  one.join();
  other.join();
  const auto elapsed = std::max(ended[0], ended[1]) - std::min(started[0], started[1]);
  return {std::chrono::duration<double>(elapsed).count(), preempted.load(std::memory_order_relaxed)};
}

}  // namespace lockstep::bench
