// SPDX-License-Identifier: Apache-2.0
// Record logs whose disk is slow, full or broken.
#include <fcntl.h>
#include <sys/resource.h>

#include <atomic>
#include <cerrno>
#include <csignal>
#include <thread>

#include "runtime/log/blocking_log_writer.hpp"
#include "runtime/log/log_test_support.hpp"

using namespace lockstep;
using namespace lockstep::log_test;

namespace {

using Append = RecordLog::Append;

/// A disk that stands still until it is let go, and then breaks if it is told to.
struct Disk {
  std::atomic<bool> running{false};
  std::atomic<bool> stood{false};  ///< a write has met it standing still
  int error = 0;
};

class FaultyWriter final : public LogWriter {
 public:
  FaultyWriter(Disk& disk, int fd, std::size_t buffer_bytes) : disk_(disk), real_(fd, 0, buffer_bytes) {}
  std::span<std::byte> buffer() override { return error_ == 0 ? real_.buffer() : std::span<std::byte>(); }
  void write(std::size_t bytes) override {
    while (!disk_.running.load(std::memory_order_acquire)) {
      disk_.stood.store(true, std::memory_order_release);
      std::this_thread::yield();
    }
    error_ = disk_.error;
    if (error_ == 0) real_.write(bytes);
  }
  std::uint64_t written_end() const override { return real_.written_end(); }
  int error() const override { return error_; }

 private:
  Disk& disk_;
  BlockingLogWriter real_;
  int error_ = 0;
};

std::unique_ptr<RecordLog> log_on(Disk& disk, const RecordLogOptions& options) {
  Descriptor file(::open(options.path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0644));
  REQUIRE(file.is_open());
  auto writer = std::make_unique<FaultyWriter>(disk, file.get(), options.batch_bytes);
  return std::make_unique<RecordLog>(options, std::move(file), 0, std::move(writer));
}

void wait_until(const std::atomic<bool>& flag) {
  while (!flag.load(std::memory_order_acquire)) std::this_thread::yield();
}

/// No file of this process grows beyond so many bytes; a write to there ends short, the next one fails with EFBIG.
class FileSizeLimit {
 public:
  explicit FileSizeLimit(rlim_t bytes) : handler_(std::signal(SIGXFSZ, SIG_IGN)) {
    getrlimit(RLIMIT_FSIZE, &before_);
    const rlimit lowered{bytes, before_.rlim_max};
    setrlimit(RLIMIT_FSIZE, &lowered);
  }
  ~FileSizeLimit() {
    setrlimit(RLIMIT_FSIZE, &before_);
    std::signal(SIGXFSZ, handler_);
  }
  FileSizeLimit(const FileSizeLimit&) = delete;
  FileSizeLimit& operator=(const FileSizeLimit&) = delete;

 private:
  rlimit before_{};
  void (*handler_)(int);
};

}  // namespace

TEST_CASE("a log that drops when its ring is full counts each record it dropped and writes whole ones") {
  const ScratchDirectory directory;
  Disk disk;
  const RecordLogOptions options{.path = directory.file("log"),
                                 .ring_bytes = 1024,
                                 .batch_records = 1,
                                 .when_full = RecordLogOptions::WhenFull::drop};
  const auto log = log_on(disk, options);
  Bytes expected;
  std::uint64_t dropped = 0;
  const auto append = [&](std::uint64_t number) {
    const Bytes one = record(0, number);
    const Append outcome = log->producer(0).append(one);
    if (outcome == Append::taken) expected.insert(expected.end(), one.begin(), one.end());
    if (outcome == Append::dropped) ++dropped;
  };
  append(0);
  wait_until(disk.stood);
  for (std::uint64_t number = 1; number < 100; ++number) append(number);
  CHECK(dropped > 0);
  CHECK(dropped < 99);
  disk.running = true;
  REQUIRE(log->flush());
  append(100);
  REQUIRE(log->close());
  CHECK(content(options.path) == expected);
  CHECK(log->counters().dropped_records == dropped);
  CHECK(log->counters().appended_records == 101 - dropped);
  CHECK(log->counters().stalls == 0);
}

TEST_CASE("a log that blocks when its ring is full holds its producer, counts that, and loses nothing") {
  const ScratchDirectory directory;
  Disk disk;
  const RecordLogOptions options{.path = directory.file("log"), .ring_bytes = 1024, .batch_records = 1};
  const auto log = log_on(disk, options);
  std::atomic<bool> done{false};
  std::thread producer([&] {
    append_records(*log, 0, 100);
    done = true;
  });
  wait_until(disk.stood);
  std::this_thread::sleep_for(std::chrono::milliseconds(20));  // long enough to fill the ring
  CHECK(!done);
  disk.running = true;
  producer.join();
  REQUIRE(log->close());
  CHECK(content(options.path) == records(0, 0, 100));
  CHECK(log->counters().stalls > 0);
  CHECK(log->counters().longest_stall_ns > 0);
  CHECK(log->counters().dropped_records == 0);
}

TEST_CASE("flush waits for the disk") {
  const ScratchDirectory directory;
  Disk disk;
  const RecordLogOptions options{.path = directory.file("log")};
  const auto log = log_on(disk, options);
  append_records(*log, 0, 10);
  std::atomic<bool> returned{false};
  std::thread flusher([&] {
    const bool flushed = log->flush().has_value();
    CHECK(flushed);
    returned = true;
  });
  wait_until(disk.stood);
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  CHECK(!returned);
  disk.running = true;
  flusher.join();
  CHECK(content(options.path) == records(0, 0, 10));
}

TEST_CASE("an error of the device ends the log, and who appends, flushes, closes or waits is told") {
  const ScratchDirectory directory;
  Disk disk;
  disk.error = EIO;
  const RecordLogOptions options{.path = directory.file("log"), .ring_bytes = 1024, .batch_records = 1};
  const auto log = log_on(disk, options);
  std::thread producer([&] {
    Append outcome = Append::taken;
    for (std::uint64_t number = 0; outcome == Append::taken; ++number)
      outcome = log->producer(0).append(record(0, number));
    CHECK(outcome == Append::failed);
  });
  wait_until(disk.stood);
  disk.running = true;
  producer.join();
  const auto flushed = log->flush();
  REQUIRE(!flushed);
  CHECK(flushed.error().message.find(options.path) != std::string::npos);
  CHECK(flushed.error().message.find("EIO") != std::string::npos);
  CHECK(log->failed());
  CHECK(log->producer(0).append(record(0, 0)) == Append::failed);
  const auto closed = log->close();
  REQUIRE(!closed);
  CHECK(closed.error().message == flushed.error().message);
  CHECK(content(options.path).empty());
  CHECK(log->counters().written_bytes == 0);
}

TEST_CASE("a disk that gets full in the middle of a write ends the log with what fitted") {
  constexpr std::size_t limit = 10'000;
  with_each_writer([=](RecordLogOptions options) {
    options.batch_bytes = 3000;
    const auto log = open_log(options);
    {
      const FileSizeLimit full(limit);
      // The disk may be full before the last is appended.
      for (std::uint64_t number = 0; number < 500; ++number)
        if (log->producer(0).append(record(0, number)) != Append::taken) break;
      const auto flushed = log->flush();
      REQUIRE(!flushed);
      CHECK(flushed.error().code == ErrorCode::full);
      CHECK(flushed.error().message.find("EFBIG") != std::string::npos);
      CHECK(flushed.error().message.find(options.path) != std::string::npos);
    }
    CHECK(log->producer(0).append(record(0, 500)) == Append::failed);
    CHECK(!log->close());
    Bytes all = records(0, 0, 500);
    REQUIRE(all.size() > limit);
    all.resize(limit);
    CHECK(content(options.path) == all);
    CHECK(log->counters().written_bytes == limit);
  });
}

TEST_CASE("a device without space is named") {
  with_each_writer([](RecordLogOptions options) {
    options.path = "/dev/full";
    const auto log = open_log(options);
    append_records(*log, 0, 1);
    const auto flushed = log->flush();
    REQUIRE(!flushed);
    CHECK(flushed.error().message.find("write /dev/full: ENOSPC") != std::string::npos);
  });
}

TEST_CASE("a log that syncs reports a sync that fails") {
  int ends[2];
  REQUIRE(::pipe(ends) == 0);
  const Descriptor reader(ends[0]);
  const ScratchDirectory directory;
  Disk disk;
  disk.running = true;
  Descriptor file(::open(directory.file("log").c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0644));
  auto writer = std::make_unique<FaultyWriter>(disk, file.get(), 1000);
  // What is synced is a pipe, which cannot be.
  RecordLog log({.path = "a pipe", .sync = true}, Descriptor(ends[1]), 0, std::move(writer));
  append_records(log, 0, 1);
  const auto flushed = log.flush();
  REQUIRE(!flushed);
  CHECK(flushed.error().message.find("sync a pipe: EINVAL") != std::string::npos);
}
