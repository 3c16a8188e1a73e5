// SPDX-License-Identifier: Apache-2.0
#pragma once

/// RecordLog: writes records to a file without holding up who makes them: audit trails, execution reports, debug lines.
/// Each thread that appends owns a Producer, a ring of its own into which a record is copied; one writer thread empties
/// the rings, gathers records to batches, and writes those.
///
///     thread A ─▶ Producer 0: ring ─┐
///     thread B ─▶ Producer 1: ring ─┴─▶ writer thread: batch ─▶ pwrite(2), or io_uring ─▶ file
///
/// The file holds the records back to back, exactly as they were appended: framing is the user's own. Records of one
/// producer keep their order; between producers there is none. It is no journal: what was appended is safe once flush()
/// has returned (with `sync`: from a power cut too), not before. Nothing is lost silently: a record that was not taken
/// is counted and its append() says so, and an error of the disk ends the log for good, is logged in one line, and is
/// what append(), flush() and close() report from then on. The file then holds what was appended up to some byte.
///
/// append() belongs to the producer's thread; flush() to any; open(), close() and the end to the thread that owns the
/// log, once no other uses it.

#include <atomic>
#include <condition_variable>
#include <cstring>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "base/descriptor.hpp"
#include "base/error.hpp"
#include "runtime/log/log_writer.hpp"
#include "runtime/metrics.hpp"
#include "runtime/ring/byte_ring.hpp"
#include "runtime/ring/cache_line.hpp"

namespace lockstep {

struct RecordLogOptions {
  /// Who writes. The appending side is the same for both. Buffered writes, as these are, go through the page cache; the
  /// kernel hands io_uring's to threads of its own, so blocking writes cost less CPU and are the default.
  enum class Writer : std::uint8_t { blocking, uring };
  /// What append() does when the ring is full: wait for the writer, or leave the record out and count it.
  enum class WhenFull : std::uint8_t { block, drop };

  std::string path = {};        ///< made if missing; records go behind what the file holds
  std::uint32_t producers = 1;  ///< threads that append
  /// Of one producer, rounded up to a power of two. Room for the writer's longest stall: 50 ms of 1 M/s at 128 B each
  /// are 8 MiB. A record is at most half of it, less 8.
  std::size_t ring_bytes = 8 << 20;
  std::uint32_t batch_records = 256;     ///< records gathered to one write, at most; fewer when no more have come
  std::uint32_t batch_bytes = 64 << 10;  ///< bytes in one write, at most
  WhenFull when_full = WhenFull::block;
  bool sync = false;                       ///< flush() and close() sync the file too
  std::uint32_t longest_sleep_us = 1'000;  ///< between two looks at rings that stay empty; nobody wakes the writer
  Writer writer = Writer::blocking;
  int sqpoll_cpu = -1;                ///< uring: CPU for a kernel thread that takes submissions; -1: none
  std::uint32_t sqpoll_idle_ms = 10;  ///< without a submission, until that thread sleeps
  bool sqpoll_forced = false;         ///< though there is no core to spare for it
};

/// Sums over all producers, since open().
struct RecordLogCounters {
  std::uint64_t appended_records = 0;
  std::uint64_t appended_bytes = 0;
  std::uint64_t dropped_records = 0;   ///< not taken: the ring was full, or the record too long for it
  std::uint64_t stalls = 0;            ///< appends that had to wait for room
  std::uint64_t longest_stall_ns = 0;  ///< of them
  std::uint64_t written_bytes = 0;     ///< in the file
  std::uint64_t writes = 0;
};

class RecordLog {
 public:
  enum class Append : std::uint8_t {
    taken,
    dropped,   ///< the ring is full
    too_long,  ///< the ring would not hold it if it were empty
    failed,    ///< the log has ended; flush() says why
  };

  class Producer;

  /// Makes or opens the file, and starts the writer's thread. ErrorCode::busy when another log has it.
  [[nodiscard]] static Result<std::unique_ptr<RecordLog>> open(const RecordLogOptions& options);

  /// As open(), on a file and a writer that the caller made, the file holding `end` bytes.
  RecordLog(const RecordLogOptions& options, Descriptor file, std::uint64_t end, std::unique_ptr<LogWriter> writer);
  RecordLog(const RecordLog&) = delete;
  RecordLog& operator=(const RecordLog&) = delete;
  /// close().
  ~RecordLog();

  /// `index` below the option's producers; for one thread.
  [[nodiscard]] Producer& producer(std::uint32_t index) { return *producers_[index]; }

  /// Returns when all that was appended before is in the file, by this thread or by one that let it know. Blocks.
  [[nodiscard]] Result<void> flush();
  /// flush(), and nothing may be appended afterwards. Again: as the first time.
  [[nodiscard]] Result<void> close();

  /// Any thread.
  [[nodiscard]] RecordLogCounters counters() const;
  [[nodiscard]] bool failed() const { return state_.load(std::memory_order_acquire) == State::failed; }

 private:
  enum class State : std::uint32_t { open, failed, closed };

  void run();
  bool gather(std::size_t bytes_per_producer);
  [[nodiscard]] bool copy(std::span<const std::byte> record);
  void write_gathered();
  void finish_flush(std::uint64_t wanted);
  void sleep(std::uint64_t flushed);
  void wake();
  void fail_with(const char* operation, int error);

  RecordLogOptions options_;
  Descriptor file_;
  std::uint64_t start_;
  std::unique_ptr<LogWriter> writer_;
  std::vector<std::unique_ptr<Producer>> producers_;

  // The writer thread's own.
  std::span<std::byte> buffer_;  ///< being filled
  std::size_t gathered_bytes_ = 0;
  std::uint32_t gathered_records_ = 0;
  std::int64_t sleep_ns_ = 0;
  Counter writes_;
  Counter written_bytes_;

  // Read by each append, written once: release with error_ set, acquire in append().
  alignas(cache_line_bytes) std::atomic<State> state_{State::open};
  // 1 while the writer sleeps or is about to. Stored before it looks at flush_wanted_ and stop_ once more; who changes
  // those does so before taking it back. All sequentially consistent, so one of the two sees the other.
  alignas(cache_line_bytes) std::atomic<std::uint32_t> asleep_{0};
  std::atomic<std::uint64_t> flush_wanted_{0};
  std::atomic<bool> stop_{false};

  std::mutex mutex_;  // guards the two below, and closed_
  std::condition_variable changed_;
  std::uint64_t flushed_ = 0;
  std::optional<Error> error_;
  bool closed_ = false;
  std::thread thread_;
};

/// One thread's way into a RecordLog.
class alignas(cache_line_bytes) RecordLog::Producer {
 public:
  Producer(RecordLog& log, std::size_t ring_bytes, bool drops) : log_(log), drops_(drops), ring_(ring_bytes) {}

  /// Copies the record into the ring. No allocation, lock or system call, but when the ring is full. An empty record is
  /// taken and leaves no trace.
  [[nodiscard]] Append append(std::span<const std::byte> record) {
    // Pairs with the release of whoever ended the log.
    if (log_.state_.load(std::memory_order_acquire) != State::open) [[unlikely]]
      return Append::failed;
    if (record.empty()) [[unlikely]]
      return Append::taken;
    const std::span<std::byte> room = ring_.claim(record.size());
    if (room.empty()) [[unlikely]]
      return append_to_full_ring(record);
    put(record, room);
    return Append::taken;
  }

 private:
  friend class RecordLog;

  void put(std::span<const std::byte> record, std::span<std::byte> room) {
    std::memcpy(room.data(), record.data(), record.size());
    ring_.publish();
    appended_records_.add();
    appended_bytes_.add(record.size());
  }
  [[nodiscard]] Append append_to_full_ring(std::span<const std::byte> record);
  [[nodiscard]] std::span<std::byte> wait_for_room(std::size_t bytes);

  RecordLog& log_;
  bool drops_;
  Counter appended_records_;
  Counter appended_bytes_;
  Counter dropped_records_;
  Counter stalls_;
  Counter longest_stall_ns_;
  ByteRing ring_;
};

}  // namespace lockstep
