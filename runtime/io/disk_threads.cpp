// SPDX-License-Identifier: Apache-2.0
#include "runtime/io/disk_threads.hpp"

#include <pthread.h>

#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <utility>

#include "base/assert.hpp"
#include "base/system_error.hpp"
#include "journal/posix_files.hpp"

namespace lockstep::io {
namespace {

/// What background work sees: nothing that the owner of the real Disk touches.
class BlockingDisk final : public PosixFiles {
 public:
  void close(FileId file) override { ::close(static_cast<int>(file)); }
  void submit_write(FileId, std::uint64_t, std::span<const iovec>, std::uint64_t) override { refuse(); }
  void submit_sync(FileId, std::uint64_t) override { refuse(); }
  void submit_background(std::function<Result<void>(Disk&)>, std::uint64_t) override { refuse(); }
  std::span<const DiskCompletion> poll() override { refuse(); }

 private:
  [[noreturn]] static void refuse() {
    LOCKSTEP_ASSERT(false, "background work uses a Disk's blocking calls only");
    std::abort();
  }
};

}  // namespace

DiskThreads::DiskThreads(std::string name, unsigned threads, std::function<void()> notify)
    : name_(std::move(name)), thread_count_(threads), notify_(std::move(notify)) {}

DiskThreads::~DiskThreads() {
  for (std::jthread& thread : threads_) thread.request_stop();
}

void DiskThreads::start() {
  // Signals are for the program's own threads: a helper inherits a mask that blocks them all.
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  for (unsigned i = 0; i < thread_count_; ++i) {
    threads_.emplace_back([this](const std::stop_token& stop) { run(stop); });
    pthread_setname_np(threads_.back().native_handle(), name_.c_str());
  }
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

void DiskThreads::submit(std::function<std::int64_t()> job, std::uint64_t token) {
  if (threads_.empty()) start();
  {
    const std::lock_guard lock(mutex_);
    jobs_.push_back({std::move(job), token});
  }
  work_arrived_.notify_one();
}

bool DiskThreads::collect(std::vector<DiskCompletion>& into) {
  // Pairs with the release store in run().
  if (!has_results_.load(std::memory_order_acquire)) return false;
  const std::lock_guard lock(mutex_);
  into.insert(into.end(), results_.begin(), results_.end());
  results_.clear();
  has_results_.store(false, std::memory_order_relaxed);
  return true;
}

void DiskThreads::run(const std::stop_token& stop) {
  std::unique_lock lock(mutex_);
  while (work_arrived_.wait(lock, stop, [this] { return !jobs_.empty(); })) {
    if (stop.stop_requested()) return;
    const Job job = std::move(jobs_.front());
    jobs_.pop_front();
    lock.unlock();
    const std::int64_t result = job.work();
    lock.lock();
    results_.push_back({job.token, result});
    // Pairs with the acquire load in collect().
    has_results_.store(true, std::memory_order_release);
    lock.unlock();
    notify_();
    lock.lock();
  }
}

std::int64_t run_background(const std::function<Result<void>(Disk&)>& work) {
  BlockingDisk disk;
  const Result<void> done = work(disk);
  return done ? 0 : -errno_of(done.error().code);
}

}  // namespace lockstep::io
