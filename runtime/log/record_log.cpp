// SPDX-License-Identifier: Apache-2.0
#include "runtime/log/record_log.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <pthread.h>
#include <sched.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>

#include "base/cpu_relax.hpp"
#include "base/futex.hpp"
#include "base/log.hpp"
#include "base/system_error.hpp"
#include "runtime/log/blocking_log_writer.hpp"
#include "runtime/log/uring_log_writer.hpp"

namespace lockstep {
namespace {

/// The first sleep after there was work; each further one is twice as long.
constexpr std::int64_t shortest_sleep_ns = 50'000;

Result<void> check(const RecordLogOptions& options) {
  const auto refuse = [&](std::string_view what) {
    return fail(ErrorCode::usage, fmt::format("record log {}: {}", options.path, what));
  };
  if (options.path.empty()) return fail(ErrorCode::usage, "a record log needs a path");
  if (options.producers == 0) return refuse("producers is 0; it is the number of threads that append");
  if (options.ring_bytes > ByteRing::max_capacity_bytes) return refuse("ring_bytes is more than 2 GiB");
  if (options.batch_records == 0) return refuse("batch_records is 0; a write holds at least one");
  if (options.batch_bytes == 0) return refuse("batch_bytes is 0; a write holds at least one");
  if (options.sqpoll_cpu >= 0 && options.writer != RecordLogOptions::Writer::uring)
    return refuse("sqpoll_cpu is for the io_uring writer");
  if (options.sqpoll_cpu >= 0 && options.sqpoll_idle_ms == 0) return refuse("sqpoll_idle_ms is 0; give at least 1");
  return {};
}

std::vector<int> allowed_cpus() {
  std::vector<int> cpus;
  cpu_set_t set;
  CPU_ZERO(&set);
  if (sched_getaffinity(0, sizeof set, &set) != 0) return cpus;
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu)
    if (CPU_ISSET(static_cast<unsigned>(cpu), &set)) cpus.push_back(cpu);
  return cpus;
}

Result<std::unique_ptr<LogWriter>> make_writer(const RecordLogOptions& options, int fd, std::uint64_t end) {
  if (options.writer == RecordLogOptions::Writer::blocking)
    return std::make_unique<BlockingLogWriter>(fd, end, options.batch_bytes);
  UringLogWriter::Options uring{.buffer_bytes = options.batch_bytes};
  if (options.sqpoll_cpu >= 0) {
    if (!options.sqpoll_forced) {
      const std::size_t busy_threads = std::size_t{options.producers} + 1;
      if (auto spare = check_polling_cpu(options.sqpoll_cpu, allowed_cpus(), busy_threads); !spare)
        return std::unexpected(spare.error());
    }
    uring.poller = {.cpu = options.sqpoll_cpu, .idle_ms = options.sqpoll_idle_ms};
  }
  return UringLogWriter::open(fd, end, uring);
}

/// The file, for us alone, and how long it is.
Result<std::pair<Descriptor, std::uint64_t>> open_file(const std::string& path) {
  Descriptor file(::open(path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0644));
  if (!file.is_open()) return system_failure("open", path, errno);
  if (::flock(file.get(), LOCK_EX | LOCK_NB) != 0) return system_failure("lock", path, errno);
  struct stat status{};
  if (::fstat(file.get(), &status) != 0) return system_failure("stat", path, errno);
  return std::pair{std::move(file), static_cast<std::uint64_t>(status.st_size)};
}

}  // namespace

Result<std::unique_ptr<RecordLog>> RecordLog::open(const RecordLogOptions& options) {
  if (auto valid = check(options); !valid) return std::unexpected(valid.error());
  auto opened = open_file(options.path);
  if (!opened) return std::unexpected(opened.error());
  auto& [file, end] = *opened;
  auto writer = make_writer(options, file.get(), end);
  if (!writer) return fail(writer.error().code, fmt::format("record log {}: {}", options.path, writer.error().message));
  return std::make_unique<RecordLog>(options, std::move(file), end, std::move(*writer));
}

RecordLog::RecordLog(const RecordLogOptions& options, Descriptor file, std::uint64_t end,
                     std::unique_ptr<LogWriter> writer)
    : options_(options), file_(std::move(file)), start_(end), writer_(std::move(writer)) {
  for (std::uint32_t i = 0; i < options.producers; ++i)
    producers_.push_back(
        std::make_unique<Producer>(*this, options.ring_bytes, options.when_full == RecordLogOptions::WhenFull::drop));
  thread_ = std::thread([this] {
    pthread_setname_np(pthread_self(), "record-log");
    run();
  });
}

RecordLog::~RecordLog() {
  (void)close();  // an error was logged when it came
}

Result<void> RecordLog::flush() {
  std::unique_lock lock(mutex_);
  if (!error_ && !closed_) {
    const std::uint64_t wanted = flush_wanted_.fetch_add(1, std::memory_order_seq_cst) + 1;
    wake();
    changed_.wait(lock, [&] { return flushed_ >= wanted || error_; });
  }
  if (error_) return std::unexpected(*error_);
  return {};
}

Result<void> RecordLog::close() {
  auto flushed = flush();
  if (!thread_.joinable()) return flushed;
  stop_.store(true, std::memory_order_seq_cst);
  wake();
  thread_.join();
  State open = State::open;
  state_.compare_exchange_strong(open, State::closed, std::memory_order_release);  // pairs with append()'s acquire
  const std::lock_guard lock(mutex_);
  closed_ = true;
  writer_.reset();
  file_.reset();
  return flushed;
}

RecordLogCounters RecordLog::counters() const {
  RecordLogCounters sum;
  for (const auto& producer : producers_) {
    sum.appended_records += producer->appended_records_.value();
    sum.appended_bytes += producer->appended_bytes_.value();
    sum.dropped_records += producer->dropped_records_.value();
    sum.stalls += producer->stalls_.value();
    sum.longest_stall_ns = std::max(sum.longest_stall_ns, producer->longest_stall_ns_.value());
  }
  sum.written_bytes = written_bytes_.value();
  sum.writes = writes_.value();
  return sum;
}

// The writer thread.

void RecordLog::run() {
  if (const int error = writer_->bind(); error != 0) return fail_with("bind the ring for", error);
  std::uint64_t flushed = 0;
  while (!stop_.load(std::memory_order_acquire)) {
    // Pairs with flush(): what was appended before that is in the rings when they are looked at below.
    const std::uint64_t wanted = flush_wanted_.load(std::memory_order_acquire);
    const bool flushing = wanted != flushed;
    // A ring holds no more than its capacity, so that much is all that a flush has to wait for.
    const bool worked = gather(flushing ? producers_.front()->ring_.capacity_bytes() : options_.batch_bytes);
    if (flushing || !worked) write_gathered();
    writer_->poll();
    if (flushing) writer_->finish();
    written_bytes_.set(writer_->written_end() - start_);
    if (const int error = writer_->error(); error != 0) return fail_with("write", error);
    if (flushing) {
      if (options_.sync && ::fdatasync(file_.get()) != 0) return fail_with("sync", errno);
      finish_flush(wanted);
      flushed = wanted;
    } else if (worked) {
      sleep_ns_ = shortest_sleep_ns;
    } else {
      sleep(flushed);
    }
  }
}

/// Takes up to so many bytes, and then the record that goes beyond, from each ring; whether there were any.
bool RecordLog::gather(std::size_t bytes_per_producer) {
  bool any = false;
  for (const auto& producer : producers_) {
    ByteRing& ring = producer->ring_;
    std::size_t taken = 0;
    while (taken < bytes_per_producer) {
      const std::span<const std::byte> record = ring.peek();
      if (record.empty() || !copy(record)) break;
      taken += record.size();
      ring.release();
      if (gathered_records_ < options_.batch_records) continue;
      ring.flush();  // its producer goes on while this thread writes
      write_gathered();
    }
    ring.flush();
    any = any || taken != 0;
  }
  return any;
}

/// False when the writer has failed.
bool RecordLog::copy(std::span<const std::byte> record) {
  while (!record.empty()) {
    if (gathered_bytes_ == buffer_.size()) write_gathered();
    if (buffer_.empty()) buffer_ = writer_->buffer();
    if (buffer_.empty()) return false;
    const std::size_t count = std::min(record.size(), buffer_.size() - gathered_bytes_);
    std::memcpy(buffer_.data() + gathered_bytes_, record.data(), count);
    gathered_bytes_ += count;
    record = record.subspan(count);
  }
  ++gathered_records_;
  return true;
}

void RecordLog::write_gathered() {
  if (gathered_bytes_ == 0) return;
  writer_->write(gathered_bytes_);
  writes_.add();
  buffer_ = {};
  gathered_bytes_ = 0;
  gathered_records_ = 0;
}

void RecordLog::finish_flush(std::uint64_t wanted) {
  const std::lock_guard lock(mutex_);
  flushed_ = wanted;
  changed_.notify_all();
}

void RecordLog::sleep(std::uint64_t flushed) {
  asleep_.store(1, std::memory_order_seq_cst);
  if (flush_wanted_.load(std::memory_order_seq_cst) == flushed && !stop_.load(std::memory_order_seq_cst))
    futex_wait(asleep_, 1, sleep_ns_);
  asleep_.store(0, std::memory_order_relaxed);
  const std::int64_t longest_ns = std::int64_t{options_.longest_sleep_us} * 1000;
  sleep_ns_ = std::max(shortest_sleep_ns, std::min(2 * sleep_ns_, longest_ns));
}

void RecordLog::wake() {
  if (asleep_.exchange(0, std::memory_order_seq_cst) != 0) futex_wake(asleep_);
}

void RecordLog::fail_with(const char* operation, int error) {
  writer_->finish();
  const std::uint64_t end = writer_->written_end();
  // Writes behind the one that failed may have got there: what stands behind a gap is taken away. A file that cannot be
  // cut, a device, has no bytes there either.
  (void)::ftruncate(file_.get(), static_cast<off_t>(end));
  Error failure = system_error(operation, options_.path, error);
  failure.message += fmt::format(
      " (the log has ended: the file holds the first {} bytes that were appended, and "
      "nothing that came after)",
      end - start_);
  log(LogLevel::error, "log", "{}", failure.message);
  const std::lock_guard lock(mutex_);
  error_ = std::move(failure);
  state_.store(State::failed, std::memory_order_release);  // pairs with append()'s and failed()'s acquire
  changed_.notify_all();
}

// A producer's thread.

RecordLog::Append RecordLog::Producer::append_to_full_ring(std::span<const std::byte> record) {
  if (record.size() > ring_.max_frame_bytes()) {
    dropped_records_.add();
    return Append::too_long;
  }
  if (drops_) {
    dropped_records_.add();
    log_.wake();
    return Append::dropped;
  }
  const std::span<std::byte> room = wait_for_room(record.size());
  if (room.empty()) return Append::failed;
  put(record, room);
  return Append::taken;
}

/// Empty when the log has ended.
std::span<std::byte> RecordLog::Producer::wait_for_room(std::size_t bytes) {
  constexpr int spins = 100, yields = 100;
  constexpr auto nap = std::chrono::microseconds(50);
  const auto began = std::chrono::steady_clock::now();
  std::span<std::byte> room;
  for (int turn = 0; room.empty(); ++turn) {
    if (log_.state_.load(std::memory_order_acquire) != State::open) return {};
    log_.wake();
    if (turn < spins) {
      cpu_relax();
    } else if (turn < spins + yields) {
      sched_yield();
    } else {
      std::this_thread::sleep_for(nap);  // a thread of real-time priority yields to no other
    }
    room = ring_.claim(bytes);
  }
  const std::chrono::nanoseconds took = std::chrono::steady_clock::now() - began;
  stalls_.add();
  longest_stall_ns_.set(std::max(longest_stall_ns_.value(), static_cast<std::uint64_t>(took.count())));
  return room;
}

}  // namespace lockstep
