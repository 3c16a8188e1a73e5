// SPDX-License-Identifier: Apache-2.0
#pragma once

/// ReceiveBuffers: the memory bytes are received into, shared by all connections of one Network: `count` buffers of
/// `bytes` each in one mapping (huge pages where the host gives them, else plain pages with a hint). It knows which
/// buffer an address lies in and can chain buffers that wait for a paused connection; which buffers are free is kept by
/// whoever fills them. One thread.

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/error.hpp"

namespace lockstep::io {

/// Buffers held back for one connection, oldest first.
struct HeldBuffers {
  static constexpr std::uint32_t none = UINT32_MAX;
  std::uint32_t first = none;
  std::uint32_t last = none;
  [[nodiscard]] bool empty() const { return first == none; }
};

class ReceiveBuffers {
 public:
  ReceiveBuffers() = default;
  ~ReceiveBuffers();
  ReceiveBuffers(const ReceiveBuffers&) = delete;
  ReceiveBuffers& operator=(const ReceiveBuffers&) = delete;

  [[nodiscard]] Result<void> map(std::uint32_t count, std::uint32_t bytes);

  [[nodiscard]] std::uint32_t count() const { return count_; }
  [[nodiscard]] std::span<std::byte> buffer(std::uint32_t index) {
    return {memory_ + std::size_t{index} * bytes_, bytes_};
  }
  [[nodiscard]] std::uint32_t index_of(std::span<const std::byte> data) const {
    return static_cast<std::uint32_t>(static_cast<std::size_t>(data.data() - memory_) / bytes_);
  }

  /// Puts the received bytes (which start a buffer) at the end of a chain.
  void hold(HeldBuffers& chain, std::span<const std::byte> data);
  /// Takes the oldest off a chain that is not empty.
  [[nodiscard]] std::span<const std::byte> unhold(HeldBuffers& chain);

 private:
  struct Link {
    std::uint32_t length = 0;
    std::uint32_t next = HeldBuffers::none;
  };

  std::byte* memory_ = nullptr;
  std::size_t mapped_bytes_ = 0;
  std::uint32_t count_ = 0;
  std::uint32_t bytes_ = 0;
  std::vector<Link> links_;
};

}  // namespace lockstep::io
