// SPDX-License-Identifier: Apache-2.0
#include "runtime/log/record_log.hpp"

#include <algorithm>
#include <thread>

#include "runtime/log/log_test_support.hpp"
#include "runtime/log/uring_log_writer.hpp"

using namespace lockstep;
using namespace lockstep::log_test;

namespace {

/// Follows a file that several producers wrote: each one's records must come whole, in order, from 0 on.
std::vector<std::uint64_t> records_by_producer(const Bytes& bytes, std::uint32_t producers) {
  std::vector<std::uint64_t> next(producers);
  std::size_t at = 0;
  while (at + sizeof(RecordStart) <= bytes.size()) {
    RecordStart start;
    std::memcpy(&start, bytes.data() + at, sizeof start);
    REQUIRE(start.producer < producers);
    REQUIRE(start.number == next[start.producer]);
    const Bytes expected = record(start.producer, next[start.producer]++);
    REQUIRE(at + expected.size() <= bytes.size());
    REQUIRE(std::memcmp(bytes.data() + at, expected.data(), expected.size()) == 0);
    at += expected.size();
  }
  CHECK(at == bytes.size());
  return next;
}

}  // namespace

TEST_CASE("a hundred records are in the file, byte for byte, when flush has returned, and after close") {
  with_each_writer([](const RecordLogOptions& options) {
    const auto log = open_log(options);
    append_records(*log, 0, 100);
    REQUIRE(log->flush());
    CHECK(content(options.path) == records(0, 0, 100));
    CHECK(log->counters().written_bytes == records(0, 0, 100).size());
    REQUIRE(log->close());
    CHECK(content(options.path) == records(0, 0, 100));
  });
}

TEST_CASE("close writes what no flush was asked for") {
  with_each_writer([](const RecordLogOptions& options) {
    const auto log = open_log(options);
    append_records(*log, 0, 100);
    REQUIRE(log->close());
    CHECK(content(options.path) == records(0, 0, 100));
    CHECK(log->producer(0).append(record(0, 100)) == RecordLog::Append::failed);
  });
}

TEST_CASE("records stay whole and in order through a ring and buffers far smaller than they are together") {
  with_each_writer([](RecordLogOptions options) {
    options.ring_bytes = 1024;
    options.batch_records = 4;
    options.batch_bytes = 300;
    const auto log = open_log(options);
    append_records(*log, 0, 5120);
    REQUIRE(log->close());
    CHECK(content(options.path) == records(0, 0, 5120));
    CHECK(log->counters().writes >= 5120 / 4);
  });
}

TEST_CASE("each of eight producers finds its records in its order") {
  constexpr std::uint32_t producers = 8;
  constexpr std::uint64_t each = 2000;
  with_each_writer([=](RecordLogOptions options) {
    options.producers = producers;
    options.ring_bytes = 4096;
    options.batch_records = 16;
    const auto log = open_log(options);
    std::vector<std::thread> threads;
    threads.reserve(producers);
    for (std::uint32_t producer = 0; producer < producers; ++producer) {
      threads.emplace_back([&log, producer] {
        for (std::uint64_t number = 0; number < each; ++number) {
          if (log->producer(producer).append(record(producer, number)) != RecordLog::Append::taken) return;
          if (number == each / 2 && !log->flush()) return;
        }
      });
    }
    for (std::thread& thread : threads) thread.join();
    REQUIRE(log->close());
    CHECK(records_by_producer(content(options.path), producers) == std::vector<std::uint64_t>(producers, each));
    CHECK(log->counters().appended_records == producers * each);
  });
}

TEST_CASE("a flush covers what its own thread appended while others go on appending") {
  with_each_writer([](RecordLogOptions options) {
    options.producers = 2;
    options.ring_bytes = 4096;
    const auto log = open_log(options);
    std::atomic<bool> enough{false};
    std::thread other([&] {
      for (std::uint64_t number = 0; !enough.load(std::memory_order_relaxed); ++number) {
        if (log->producer(1).append(record(1, number)) != RecordLog::Append::taken) return;
        std::this_thread::sleep_for(std::chrono::microseconds(20));
      }
    });
    std::uint64_t found = 0;
    for (std::uint64_t number = 0; number < 20; ++number) {
      append_records(*log, 0, 1, number);
      const bool flushed = log->flush().has_value();
      const Bytes last = record(0, number);
      const Bytes file = content(options.path);
      if (flushed && std::ranges::search(file, last)) ++found;
    }
    enough = true;
    other.join();
    CHECK(found == 20);
    REQUIRE(log->close());
  });
}

TEST_CASE("a log goes on behind what its file holds") {
  with_each_writer([](const RecordLogOptions& options) {
    {
      const auto log = open_log(options);
      append_records(*log, 0, 10);
    }
    const auto log = open_log(options);
    append_records(*log, 0, 10, 10);
    REQUIRE(log->close());
    CHECK(content(options.path) == records(0, 0, 20));
  });
}

TEST_CASE("a record longer than a write's buffer is written whole") {
  with_each_writer([](RecordLogOptions options) {
    options.batch_bytes = 1000;
    const auto log = open_log(options);
    Bytes expected = record(0, 0);
    Bytes long_record(10'000);
    for (std::size_t i = 0; i < long_record.size(); ++i) long_record[i] = static_cast<std::byte>(i * 7 / 3);
    append_records(*log, 0, 1);
    CHECK(log->producer(0).append(long_record) == RecordLog::Append::taken);
    REQUIRE(log->close());
    expected.insert(expected.end(), long_record.begin(), long_record.end());
    CHECK(content(options.path) == expected);
  });
}

TEST_CASE("an empty record leaves no trace, and one that no ring would hold is refused and counted") {
  with_each_writer([](RecordLogOptions options) {
    options.ring_bytes = 1024;
    const auto log = open_log(options);
    CHECK(log->producer(0).append({}) == RecordLog::Append::taken);
    CHECK(log->producer(0).append(Bytes(1024 / 2 - 8)) == RecordLog::Append::taken);
    CHECK(log->producer(0).append(Bytes(1024 / 2 - 7)) == RecordLog::Append::too_long);
    REQUIRE(log->close());
    CHECK(content(options.path) == Bytes(1024 / 2 - 8));
    CHECK(log->counters().appended_records == 1);
    CHECK(log->counters().dropped_records == 1);
  });
}

TEST_CASE("a file belongs to one log at a time") {
  with_each_writer([](const RecordLogOptions& options) {
    const auto log = open_log(options);
    const auto second = RecordLog::open(options);
    REQUIRE(!second);
    CHECK(second.error().code == ErrorCode::busy);
    CHECK(second.error().message.find(options.path) != std::string::npos);
  });
}

TEST_CASE("a log that cannot be made says why") {
  const ScratchDirectory directory;
  const std::string path = directory.file("log");
  const auto refusal = [](const RecordLogOptions& options) {
    const auto opened = RecordLog::open(options);
    return opened ? std::string() : opened.error().message;
  };
  CHECK(refusal({}).find("path") != std::string::npos);
  CHECK(refusal({.path = directory.file("none/log")}).find("ENOENT") != std::string::npos);
  CHECK(refusal({.path = path, .producers = 0}).find("producers") != std::string::npos);
  CHECK(refusal({.path = path, .batch_records = 0}).find("batch_records") != std::string::npos);
  CHECK(refusal({.path = path, .batch_bytes = 0}).find("batch_bytes") != std::string::npos);
  CHECK(refusal({.path = path, .ring_bytes = std::size_t{1} << 32U}).find("ring_bytes") != std::string::npos);
  CHECK(refusal({.path = path, .sqpoll_cpu = 0}).find("io_uring writer") != std::string::npos);
  CHECK(refusal({.path = path, .writer = RecordLogOptions::Writer::uring, .sqpoll_cpu = 0, .sqpoll_idle_ms = 0})
            .find("sqpoll_idle_ms") != std::string::npos);
}

TEST_CASE("a polling thread is refused a CPU that the log's own threads need") {
  const std::vector<int> two{0, 1};
  const std::vector<int> three{0, 1, 4};
  CHECK(!check_polling_cpu(1, two, 2));
  CHECK(check_polling_cpu(1, two, 2).error().message.find("sqpoll_forced") != std::string::npos);
  CHECK(check_polling_cpu(4, three, 2));
  CHECK(!check_polling_cpu(4, three, 3));
  CHECK(check_polling_cpu(2, three, 2).error().message.find("may not use") != std::string::npos);
}

TEST_CASE("a kernel thread that polls where it was forced to loses nothing") {
  const ScratchDirectory directory;
  cpu_set_t set;
  REQUIRE(sched_getaffinity(0, sizeof set, &set) == 0);
  int cpu = 0;
  while (!CPU_ISSET(static_cast<unsigned>(cpu), &set)) ++cpu;
  RecordLogOptions options{.path = directory.file("log"),
                           .ring_bytes = 4096,
                           .batch_records = 64,
                           .writer = RecordLogOptions::Writer::uring,
                           .sqpoll_cpu = cpu,
                           .sqpoll_idle_ms = 1,
                           .sqpoll_forced = true};
  auto log = RecordLog::open(options);
  if (!log && log.error().code == ErrorCode::unsupported) {
    MESSAGE("left out: this host forbids io_uring");
    return;
  }
  REQUIRE_MESSAGE(log, log.error().message);
  append_records(**log, 0, 1000);
  REQUIRE((*log)->flush());
  std::this_thread::sleep_for(std::chrono::milliseconds(20));  // the polling thread falls asleep
  append_records(**log, 0, 1000, 1000);
  REQUIRE((*log)->close());
  CHECK(content(options.path) == records(0, 0, 2000));
}
