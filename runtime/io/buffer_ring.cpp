// SPDX-License-Identifier: Apache-2.0
#include "runtime/io/buffer_ring.hpp"

#include <fmt/format.h>
#include <sys/mman.h>

#include <bit>
#include <cerrno>

#include "base/assert.hpp"
#include "base/system_error.hpp"

namespace lockstep::io {

BufferRing::~BufferRing() {
  if (ring_ != nullptr) ::munmap(ring_, mapped_bytes_);
}

Result<void> BufferRing::open(Ring& ring, ReceiveBuffers& buffers, std::uint16_t group) {
  LOCKSTEP_ASSERT(ring_ == nullptr, "a buffer ring is opened once");
  const std::uint32_t count = buffers.count();
  if (!std::has_single_bit(count) || count > 32768)
    return fail(ErrorCode::usage, fmt::format("{} receive buffers: give a power of two up to 32768", count));
  mapped_bytes_ = count * sizeof(io_uring_buf);
  void* memory = ::mmap(nullptr, mapped_bytes_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) return system_failure("map", "a buffer ring", errno);
  ring_ = static_cast<io_uring_buf_ring*>(memory);
  io_uring_buf_ring_init(ring_);

  io_uring_buf_reg registration{};
  registration.ring_addr = reinterpret_cast<std::uintptr_t>(memory);
  registration.ring_entries = count;
  registration.bgid = group;
  if (const int result = io_uring_register_buf_ring(ring.native(), &registration, 0); result != 0)
    return system_failure("register", fmt::format("a ring of {} receive buffers", count), -result);
  buffers_ = &buffers;
  group_ = group;
  for (std::uint32_t index = 0; index < count; ++index) give_back(index);
  publish();
  return {};
}

void BufferRing::give_back(std::uint32_t index) {
  const auto buffer = buffers_->buffer(index);
  const int mask = io_uring_buf_ring_mask(buffers_->count());
  io_uring_buf_ring_add(ring_, buffer.data(), static_cast<unsigned>(buffer.size()), static_cast<std::uint16_t>(index),
                        mask, static_cast<int>(given_back_));
  ++given_back_;
}

void BufferRing::publish() {
  if (given_back_ == 0) return;
  io_uring_buf_ring_advance(ring_, static_cast<int>(given_back_));
  available_ += given_back_;
  given_back_ = 0;
}

}  // namespace lockstep::io
