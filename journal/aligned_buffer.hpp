// SPDX-License-Identifier: Apache-2.0
#pragma once

/// AlignedBuffer: an owned run of bytes on a 4096 boundary, as O_DIRECT wants it and as FlatBuffers in a payload profit
/// from. Its length is rounded up to whole 4096-byte blocks and starts zeroed. Allocates at construction only.

#include <cstddef>
#include <cstring>
#include <memory>
#include <new>
#include <span>

namespace lockstep {

inline constexpr std::size_t disk_block_bytes = 4096;

[[nodiscard]] constexpr std::size_t round_up_to_block(std::size_t bytes) {
  return (bytes + disk_block_bytes - 1) & ~(disk_block_bytes - 1);
}

class AlignedBuffer {
 public:
  AlignedBuffer() = default;
  explicit AlignedBuffer(std::size_t bytes) : bytes_(round_up_to_block(bytes)) {
    if (bytes_ == 0) return;
    memory_.reset(static_cast<std::byte*>(::operator new(bytes_, std::align_val_t{disk_block_bytes})));
    std::memset(memory_.get(), 0, bytes_);
  }

  [[nodiscard]] std::byte* data() { return memory_.get(); }
  [[nodiscard]] const std::byte* data() const { return memory_.get(); }
  [[nodiscard]] std::size_t size() const { return bytes_; }
  [[nodiscard]] std::span<std::byte> span() { return {memory_.get(), bytes_}; }
  [[nodiscard]] std::span<const std::byte> span() const { return {memory_.get(), bytes_}; }

 private:
  struct Free {
    void operator()(std::byte* memory) const { ::operator delete(memory, std::align_val_t{disk_block_bytes}); }
  };
  std::unique_ptr<std::byte, Free> memory_;
  std::size_t bytes_ = 0;
};

}  // namespace lockstep
