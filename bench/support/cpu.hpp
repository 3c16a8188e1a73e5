// SPDX-License-Identifier: Apache-2.0
#pragma once

/// Where a measurement runs: pinning, and two threads started together on two CPUs. Linux only.

#include <atomic>
#include <functional>
#include <thread>
#include <vector>

namespace lockstep::bench {

/// The CPUs this process may run on, in order. Read it before pinning anything.
[[nodiscard]] const std::vector<int>& allowed_cpus();

/// Pins the calling thread; false when the kernel refuses.
bool pin_to_cpu(int cpu);

/// A thread of ordinary priority that keeps a CPU busy, and never yields it, while this lives.
class Spinner {
 public:
  explicit Spinner(int cpu);
  ~Spinner();
  Spinner(const Spinner&) = delete;
  Spinner& operator=(const Spinner&) = delete;

 private:
  std::atomic<bool> stop_{false};  ///< relaxed: nothing else is handed over
  std::thread thread_;
};

/// What running two things side by side took.
struct PairTiming {
  double seconds = 0;      ///< from the common start until both were done
  bool preempted = false;  ///< one of them was put off its CPU for another thread
};

/// Runs `first` on the first allowed CPU and `second` on the second one, started together.
[[nodiscard]] PairTiming run_pair(const std::function<void()>& first, const std::function<void()>& second);

}  // namespace lockstep::bench
