// SPDX-License-Identifier: Apache-2.0
#pragma once

/// Connection: the server's end of one, the same for all profiles. Bytes are received into one of some buffers, where
/// each whole request is made its reply; the replies are then sent out of it while the next buffer fills. At most one
/// send is under way, so that replies cannot overtake each other. A buffer that was sent is held until the kernel is
/// done with its memory: at once, but with SEND_ZC only when the peer has acknowledged it. One thread at a time.

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

#include "base/assert.hpp"
#include "bench/io_profiles/message.hpp"

namespace lockstep::bench {

/// What the service does for a message besides answering it: some rounds of arithmetic that cannot be left out, the
/// same number for every profile. `work_rounds` is what calibrate_work() gave.
inline void work(std::uint64_t work_rounds) {
  std::uint64_t value = work_rounds;
  for (std::uint64_t i = 0; i < work_rounds; ++i) value = mix(value);
  asm volatile("" : : "r"(value));
}

/// Rounds of work() that take so long on this CPU when nothing disturbs it.
[[nodiscard]] std::uint64_t calibrate_work(std::uint64_t nanoseconds);

class Connection {
 public:
  static constexpr std::size_t buffer_bytes = 4096;
  static constexpr std::size_t buffers = 8;
  static constexpr std::size_t memory_bytes = buffers * buffer_bytes;

  /// `memory` is memory_bytes long and outlives the connection.
  Connection(int fd, std::byte* memory) : fd_(fd), memory_(memory) {}

  [[nodiscard]] int fd() const { return fd_; }

  /// Where received bytes go next.
  [[nodiscard]] std::span<std::byte> room() { return {filling() + filled_, buffer_bytes - filled_}; }
  /// So many came in. Returns how many requests became replies.
  std::size_t received(std::size_t bytes, std::uint64_t work_rounds);
  /// The same for bytes that were received elsewhere.
  std::size_t take(std::span<const std::byte> bytes, std::uint64_t work_rounds) {
    LOCKSTEP_ASSERT(bytes.size() <= room().size(), "a client asked for more than the depth it promised");
    std::memcpy(room().data(), bytes.data(), bytes.size());
    return received(bytes.size(), work_rounds);
  }

  /// There are replies, none is being sent, and another buffer is free to fill meanwhile.
  [[nodiscard]] bool can_send() const { return answered_ > 0 && !sending_ && held_ + 1 < buffers; }
  [[nodiscard]] bool is_sending() const { return sending_; }
  /// Takes all replies for one send; they stay in place until released(). Only when can_send().
  [[nodiscard]] std::span<const std::byte> start_send();
  /// The next send may follow.
  void sent() { sending_ = false; }
  /// The kernel is done with the memory of the oldest send. Exactly once for each.
  void released() { --held_; }

 private:
  [[nodiscard]] std::byte* filling() { return memory_ + current_ * buffer_bytes; }

  int fd_;
  std::byte* memory_;
  std::size_t current_ = 0;   // the buffer that fills
  std::size_t filled_ = 0;    // bytes in it
  std::size_t answered_ = 0;  // of these, whole replies
  std::size_t held_ = 0;      // buffers before the current one that are not released
  bool sending_ = false;
};

}  // namespace lockstep::bench
