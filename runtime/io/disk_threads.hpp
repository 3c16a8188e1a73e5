// SPDX-License-Identifier: Apache-2.0
#pragma once

/// DiskThreads: a few helper threads that run blocking disk work and hand its results back to the thread that owns the
/// Disk. Threads start with the first job. submit() and collect() belong to the owner; results come in the order the
/// jobs end. The destructor finishes jobs under way and drops those not begun.

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "journal/disk.hpp"

namespace lockstep::io {

class DiskThreads {
 public:
  /// `notify` runs on a helper thread after each result.
  DiskThreads(std::string name, unsigned threads, std::function<void()> notify);
  ~DiskThreads();
  DiskThreads(const DiskThreads&) = delete;
  DiskThreads& operator=(const DiskThreads&) = delete;

  void submit(std::function<std::int64_t()> job, std::uint64_t token);
  /// Moves results to the end of `into`; true when there were any. Costs one load when there are none.
  bool collect(std::vector<DiskCompletion>& into);

 private:
  struct Job {
    std::function<std::int64_t()> work;
    std::uint64_t token = 0;
  };

  void start();
  void run(const std::stop_token& stop);

  const std::string name_;
  const unsigned thread_count_;
  const std::function<void()> notify_;

  std::mutex mutex_;
  std::condition_variable_any work_arrived_;
  std::deque<Job> jobs_;
  std::vector<DiskCompletion> results_;
  std::atomic<bool> has_results_{false};
  std::vector<std::jthread> threads_;
};

/// Runs background work with a Disk that has blocking calls only; returns 0 or -errno, and logs the error whose text
/// the number cannot carry.
[[nodiscard]] std::int64_t run_background(const std::function<Result<void>(Disk&)>& work);

}  // namespace lockstep::io
