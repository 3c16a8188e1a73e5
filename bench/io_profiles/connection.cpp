// SPDX-License-Identifier: Apache-2.0
#include "bench/io_profiles/connection.hpp"

#include <algorithm>
#include <chrono>

namespace lockstep::bench {

std::uint64_t calibrate_work(std::uint64_t nanoseconds) {
  constexpr std::uint64_t rounds = 10'000;
  double least_ns = 1e18;  // of many: whatever interrupts it only adds
  for (int i = 0; i < 200; ++i) {
    const auto start = std::chrono::steady_clock::now();
    work(rounds);
    const std::chrono::duration<double, std::nano> took = std::chrono::steady_clock::now() - start;
    least_ns = std::min(least_ns, took.count());
  }
  return static_cast<std::uint64_t>(static_cast<double>(nanoseconds) * rounds / least_ns);
}

std::size_t Connection::received(std::size_t bytes, std::uint64_t work_rounds) {
  filled_ += bytes;
  std::size_t replies = 0;
  for (; filled_ - answered_ >= message_bytes; answered_ += message_bytes, ++replies) {
    Message message;
    std::memcpy(&message, filling() + answered_, sizeof message);
    LOCKSTEP_ASSERT(is_well_formed(message, MessageKind::request), "the service got something that is no request");
    work(work_rounds);
    message.kind = MessageKind::reply;
    message.answer = answer_to(message);
    std::memcpy(filling() + answered_, &message, sizeof message);
  }
  return replies;
}

std::span<const std::byte> Connection::start_send() {
  LOCKSTEP_ASSERT(can_send(), "one send of a connection at a time");
  const std::span<const std::byte> replies{filling(), answered_};
  const std::size_t rest = filled_ - answered_;
  current_ = (current_ + 1) % buffers;
  ++held_;
  std::memcpy(filling(), replies.data() + replies.size(), rest);
  filled_ = rest;
  answered_ = 0;
  sending_ = true;
  return replies;
}

}  // namespace lockstep::bench
