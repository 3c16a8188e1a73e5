// SPDX-License-Identifier: Apache-2.0
#include "runtime/log/blocking_log_writer.hpp"

#include <unistd.h>

#include <cerrno>

namespace lockstep {

std::span<std::byte> BlockingLogWriter::buffer() {
  return error_ == 0 ? memory_.span().first(buffer_bytes_) : std::span<std::byte>();
}

void BlockingLogWriter::write(std::size_t bytes) {
  std::span<const std::byte> rest = memory_.span().first(bytes);
  while (!rest.empty() && error_ == 0) {
    const ssize_t count = ::pwrite(fd_, rest.data(), rest.size(), static_cast<off_t>(end_));
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) {
      error_ = count < 0 ? errno : EIO;  // a device that takes nothing and gives no reason
      return;
    }
    end_ += static_cast<std::uint64_t>(count);
    rest = rest.subspan(static_cast<std::size_t>(count));
  }
}

}  // namespace lockstep
