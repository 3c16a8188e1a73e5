// SPDX-License-Identifier: Apache-2.0
#include "runtime/load/load.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <condition_variable>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "base/clock.hpp"
#include "runtime/load/load_worker.hpp"

namespace lockstep {
namespace {

using Workers = std::vector<std::unique_ptr<LoadWorker>>;

/// From the last connection's hello to the first plan: time for the threads to start.
constexpr std::int64_t head_start_ns = 1'000'000;

Result<void> validate(const LoadOptions& options) {
  if (options.connections == 0) return fail(ErrorCode::usage, "connections must be at least 1");
  if (options.threads == 0) return fail(ErrorCode::usage, "threads must be at least 1");
  if (options.depth == 0) return fail(ErrorCode::usage, "depth must be at least 1");
  if (options.requests == 0) return fail(ErrorCode::usage, "requests must be at least 1");
  if (!std::isfinite(options.rate) || options.rate < 0)
    return fail(ErrorCode::usage, "rate must be a number of requests per second, or 0 for as fast as answers come");
  if (options.warmup >= options.requests)
    return fail(ErrorCode::usage, "warmup must be less than requests, or nothing is measured");
  return {};
}

/// Calls `progress` a few times a second until stopped.
class Reporter {
 public:
  Reporter(const Workers& workers, const std::function<void(std::uint64_t)>& progress)
      : thread_([this, &workers, &progress] {
          std::unique_lock lock(mutex_);
          while (!stopped_.wait_for(lock, std::chrono::milliseconds(200), [this] { return stop_; })) {
            std::uint64_t answered = 0;
            for (const auto& worker : workers) answered += worker->answers();
            progress(answered);
          }
        }) {}
  ~Reporter() {
    {
      const std::lock_guard lock(mutex_);
      stop_ = true;
    }
    stopped_.notify_one();
    thread_.join();
  }

 private:
  std::mutex mutex_;
  std::condition_variable stopped_;
  bool stop_ = false;
  std::thread thread_;
};

LoadResult merged(const Workers& workers, std::uint64_t requests) {
  LoadResult all;
  std::int64_t first_ns = INT64_MAX;
  std::int64_t last_ns = 0;
  for (const auto& worker : workers) {
    const LoadResult& part = worker->result();
    all.sent += part.sent;
    all.answered += part.answered;
    all.refused += part.refused;
    all.trapped += part.trapped;
    all.lost += part.lost;
    all.latency_ns.merge(part.latency_ns);
    all.disconnected |= part.disconnected;
    if (all.first_error.empty()) all.first_error = part.first_error;
    if (all.ended_by.empty()) all.ended_by = part.ended_by;
    first_ns = std::min(first_ns, worker->measured_from_ns());
    last_ns = std::max(last_ns, worker->last_answer_ns());
  }
  all.unsent = requests - all.sent;
  all.elapsed_ns = last_ns - std::min(first_ns, last_ns);
  return all;
}

}  // namespace

Result<LoadResult> run_load(const LoadOptions& asked, const WorkloadFactory& workload,
                            const std::function<void(std::uint64_t answered)>& progress) {
  if (auto valid = validate(asked); !valid) return std::unexpected(valid.error());
  LoadOptions options = asked;
  options.threads = std::min(options.threads, options.connections);
  Workers workers;
  for (std::uint32_t thread = 0; thread != options.threads; ++thread) {
    auto worker = LoadWorker::open(options, thread, workload(thread));
    if (!worker) return std::unexpected(worker.error());
    workers.push_back(std::move(*worker));
  }
  const std::int64_t start_ns = SystemClock().steady_ns() + head_start_ns;
  {
    std::unique_ptr<Reporter> reporter;
    if (progress) reporter = std::make_unique<Reporter>(workers, progress);
    std::vector<std::thread> threads;
    for (std::size_t i = 1; i < workers.size(); ++i) threads.emplace_back([&, i] { workers[i]->run(start_ns); });
    workers[0]->run(start_ns);
    for (std::thread& thread : threads) thread.join();
  }
  return merged(workers, options.requests);
}

}  // namespace lockstep
