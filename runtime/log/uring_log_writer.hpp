// SPDX-License-Identifier: Apache-2.0
#pragma once

/// UringLogWriter: LogWriter by io_uring, several buffers on their way at once, each to a place in the file of its own,
/// so that the order in which they get there does not matter. With a polling CPU a kernel thread takes the submissions
/// and the writer's thread makes no system call to write (SQPOLL); without, one a buffer.

#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "base/error.hpp"
#include "journal/aligned_buffer.hpp"
#include "runtime/io/ring.hpp"
#include "runtime/log/log_writer.hpp"

namespace lockstep {

class UringLogWriter final : public LogWriter {
 public:
  struct Poller {
    int cpu = 0;
    std::uint32_t idle_ms = 1;  ///< at least 1
  };
  struct Options {
    std::size_t buffer_bytes = 64 << 10;
    std::uint32_t buffers = 8;
    std::optional<Poller> poller = {};
  };

  /// Writes from `offset` on to `fd`, which outlives it. Any thread. Refused where the host has no io_uring.
  [[nodiscard]] static Result<std::unique_ptr<UringLogWriter>> open(int fd, std::uint64_t offset,
                                                                    const Options& options);
  /// The thread that was bound, or any once that one has ended.
  ~UringLogWriter() override { ring_.close(); }
  UringLogWriter(const UringLogWriter&) = delete;
  UringLogWriter& operator=(const UringLogWriter&) = delete;

  int bind() override;
  std::span<std::byte> buffer() override;
  void write(std::size_t bytes) override;
  void poll() override;
  void finish() override;
  std::uint64_t written_end() const override;
  int error() const override { return error_; }

 private:
  /// A buffer and where it goes.
  struct Slot {
    AlignedBuffer memory;
    std::uint64_t offset = 0;
    std::size_t bytes = 0;
    std::size_t done = 0;  ///< of them, written
  };

  UringLogWriter(int fd, std::uint64_t offset, const Options& options);

  void submit(std::uint32_t slot);
  void wait();
  void reap();
  void complete(std::uint32_t slot, std::int32_t result);

  int fd_;
  std::uint64_t end_;  ///< of all that was given to write()
  std::size_t buffer_bytes_;
  std::vector<Slot> slots_;
  // Writes begun and, without a gap, ended; write n is in slot n % slots.
  std::uint64_t begun_ = 0;
  std::uint64_t ended_ = 0;
  std::uint32_t in_flight_ = 0;
  int error_ = 0;
  io::Ring ring_;
};

/// Whether a kernel thread may poll on `cpu` beside `busy_threads` threads of this process, which may run on `allowed`.
/// Without a CPU for each, it and they take turns of whole scheduler slices, some 4 ms each; so it is refused.
[[nodiscard]] Result<void> check_polling_cpu(int cpu, std::span<const int> allowed, std::size_t busy_threads);

}  // namespace lockstep
