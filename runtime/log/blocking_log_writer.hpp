// SPDX-License-Identifier: Apache-2.0
#pragma once

/// BlockingLogWriter: LogWriter by pwrite(2), one buffer, one write at a time.

#include "journal/aligned_buffer.hpp"
#include "runtime/log/log_writer.hpp"

namespace lockstep {

class BlockingLogWriter final : public LogWriter {
 public:
  /// Writes from `offset` on to `fd`, which outlives it.
  BlockingLogWriter(int fd, std::uint64_t offset, std::size_t buffer_bytes)
      : fd_(fd), end_(offset), memory_(buffer_bytes), buffer_bytes_(buffer_bytes) {}

  std::span<std::byte> buffer() override;
  void write(std::size_t bytes) override;
  std::uint64_t written_end() const override { return end_; }
  int error() const override { return error_; }

 private:
  int fd_;
  std::uint64_t end_;
  AlignedBuffer memory_;
  std::size_t buffer_bytes_;
  int error_ = 0;
};

}  // namespace lockstep
