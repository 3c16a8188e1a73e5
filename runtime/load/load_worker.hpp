// SPDX-License-Identifier: Apache-2.0
#pragma once

/// LoadWorker: one thread's share of a load run: its connections and the requests that fall to them. Connection c of C
/// gets requests c, c + C, c + 2C, …, so plans need no queue. It sleeps in epoll until the next plan or an answer.

#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

#include "base/error.hpp"
#include "runtime/load/load.hpp"
#include "runtime/load/load_connection.hpp"

namespace lockstep {

class LoadWorker {
 public:
  /// Opens connections `thread`, thread + threads, … of the run.
  [[nodiscard]] static Result<std::unique_ptr<LoadWorker>> open(const LoadOptions& options, std::uint32_t thread,
                                                                std::unique_ptr<Workload> workload);
  ~LoadWorker();
  LoadWorker(const LoadWorker&) = delete;
  LoadWorker& operator=(const LoadWorker&) = delete;

  /// Sends and receives until its requests are answered or lost. `start_ns` is the steady time of request 0's plan.
  void run(std::int64_t start_ns);

  /// After run(). elapsed_ns is not set: it is made of the two times below, over all workers.
  [[nodiscard]] const LoadResult& result() const { return result_; }
  [[nodiscard]] std::int64_t last_answer_ns() const { return last_answer_ns_; }
  /// When the first measured request was planned; INT64_MAX if none was.
  [[nodiscard]] std::int64_t measured_from_ns() const { return measured_from_ns_; }
  /// For progress, from any thread; counts only, so relaxed.
  [[nodiscard]] std::uint64_t answers() const { return answers_.load(std::memory_order_relaxed); }

 private:
  struct Member {
    LoadConnection connection;
    std::uint64_t next_index = 0;  ///< of the run's requests
    bool is_writable = true;
    bool is_counted_out = false;  ///< it is over, and what it had is counted as lost
  };

  LoadWorker(const LoadOptions& options, std::unique_ptr<Workload> workload);
  [[nodiscard]] std::int64_t plan_ns(std::uint64_t index) const;
  /// Sends what is due; returns the next plan.
  std::int64_t send_due(std::int64_t now_ns);
  void receive(Member& member);
  void count(const LoadConnection::Answer& answer, std::int64_t now_ns);
  void count_out(Member& member);
  void watch(std::size_t index, bool for_write);
  void wait(std::int64_t until_ns);
  [[nodiscard]] bool is_done() const;
  [[nodiscard]] std::uint64_t in_flight() const;

  LoadOptions options_;
  std::unique_ptr<Workload> workload_;
  std::vector<Member> members_;
  int epoll_ = -1;
  std::int64_t start_ns_ = 0;
  double interval_ns_ = 0;  ///< between plans; 0: closed loop
  std::int64_t measured_from_ns_ = INT64_MAX;
  std::int64_t last_answer_ns_ = 0;
  std::int64_t silent_since_ns_ = 0;  ///< the last answer, or the first sending when nothing was in flight
  LoadResult result_;
  std::atomic<std::uint64_t> answers_{0};
};

}  // namespace lockstep
