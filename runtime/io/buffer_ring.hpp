// SPDX-License-Identifier: Apache-2.0
#pragma once

/// BufferRing: the receive buffers that the kernel may choose from (a provided buffer ring). Buffers given back are
/// published to the kernel together, once per turn. The kernel does not tell how many it has left, so they are counted
/// here: published minus consumed. One thread; the memory of `buffers` and of this outlives the ring it is opened on.

#include <liburing.h>

#include <cstdint>

#include "base/error.hpp"
#include "runtime/io/receive_buffers.hpp"
#include "runtime/io/ring.hpp"

namespace lockstep::io {

class BufferRing {
 public:
  BufferRing() = default;
  ~BufferRing();
  BufferRing(const BufferRing&) = delete;
  BufferRing& operator=(const BufferRing&) = delete;

  /// Registers as `group` and gives all of `buffers`. Their count is a power of two up to 32768.
  [[nodiscard]] Result<void> open(Ring& ring, ReceiveBuffers& buffers, std::uint16_t group);

  [[nodiscard]] std::uint16_t group() const { return group_; }
  /// Buffers the kernel can fill now.
  [[nodiscard]] std::uint32_t available() const { return available_; }

  /// The kernel has filled one: every completion that names a buffer counts, whatever its result.
  void consumed() { --available_; }
  void give_back(std::uint32_t index);
  /// Shows the kernel what was given back since the last call.
  void publish();

 private:
  io_uring_buf_ring* ring_ = nullptr;
  std::size_t mapped_bytes_ = 0;
  ReceiveBuffers* buffers_ = nullptr;
  std::uint16_t group_ = 0;
  std::uint32_t available_ = 0;
  std::uint32_t given_back_ = 0;
};

}  // namespace lockstep::io
