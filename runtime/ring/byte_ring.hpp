// SPDX-License-Identifier: Apache-2.0
#pragma once

/// ByteRing: a bounded queue of frames of varying length from one thread to one other, written and read in place.
/// Wait-free like SpscRing: no lock, no read-modify-write, no allocation after construction. Frames come out whole, in
/// the order they went in, and each payload is contiguous and starts on a multiple of 16.
///
///     +---------------+-----------------------+-----+   stride = 8 + bytes, rounded up to 16
///     | bytes| stride | payload, 16-aligned   |  ?  |   the first header stands 8 bytes into the buffer's line, so
///     +---------------+-----------------------+-----+   that payloads, not headers, fall on multiples of 16
///     0               8                       8+bytes
///
/// A frame that does not fit before the end of the buffer starts at its beginning, and a frame of padding fills the
/// end. Claim of both is one step: either there is room for the two or nothing changes. So that a frame fits an empty
/// ring wherever it starts, a stride is at most half the capacity.
///
/// Exactly one thread at a time is the producer and one the consumer. Producer, each turn: claim and write, any number
/// of times; then publish(). Consumer, each turn: peek, read, release(), any number of times; then flush().
/// It does not block and does not wake anybody. It trusts both sides: lengths are not checked against corruption.

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <new>
#include <span>

#include "base/assert.hpp"
#include "base/prefetch.hpp"
#include "runtime/ring/ring_sides.hpp"

namespace lockstep {

class ByteRing {
 public:
  static constexpr std::size_t frame_alignment = 16;
  static constexpr std::size_t min_capacity_bytes = 32;
  static constexpr std::size_t max_capacity_bytes = std::size_t{1} << 31;

  /// `capacity_bytes` is rounded up to a power of two; all memory is taken, and touched, here.
  explicit ByteRing(std::size_t capacity_bytes)
      : storage_(allocate(std::bit_ceil(std::max(capacity_bytes, min_capacity_bytes)))) {
    LOCKSTEP_ASSERT(capacity_bytes <= max_capacity_bytes, "a byte ring's frame header counts in 32 bits");
    producer_.buffer = consumer_.buffer = storage_.get() + sizeof(Header);
    producer_.mask = consumer_.mask = std::bit_ceil(std::max(capacity_bytes, min_capacity_bytes)) - 1;
    producer_.limit = this->capacity_bytes();
  }
  ByteRing(const ByteRing&) = delete;
  ByteRing& operator=(const ByteRing&) = delete;

  [[nodiscard]] std::size_t capacity_bytes() const { return producer_.mask + 1; }

  /// The longest payload this ring takes; a longer one never fits.
  [[nodiscard]] std::size_t max_frame_bytes() const { return capacity_bytes() / 2 - sizeof(Header); }

  // Producer.

  /// Room for one frame of exactly `bytes` (at least 1), 16-aligned, holding old bytes; to be written before publish().
  /// Empty, with nothing changed, when it does not fit now or is longer than max_frame_bytes(). What was claimed before
  /// is not published by that: a producer that waits for room must publish() first.
  [[nodiscard]] std::span<std::byte> claim(std::size_t bytes) {
    LOCKSTEP_ASSERT(bytes != 0, "a frame has at least one byte");
    if (bytes > max_frame_bytes()) [[unlikely]]
      return {};
    const std::uint64_t stride = stride_of(bytes);
    const std::uint64_t to_end = capacity_bytes() - (producer_.next & producer_.mask);
    const std::uint64_t padding = stride <= to_end ? 0 : to_end;
    if (producer_.available() < padding + stride) {
      producer_.load(head_, capacity_bytes());
      if (producer_.available() < padding + stride) return {};
    }
    if (padding != 0) [[unlikely]]
      put_header(padding_mark, padding);
    std::byte* const payload = put_header(static_cast<std::uint32_t>(bytes), stride);
    return {payload, bytes};
  }

  /// Makes all claimed frames visible; nothing when there are none.
  void publish() { producer_.publish_if_behind(tail_); }

  /// Takes the lines where the next frame begins back from the consumer's core, which has read them a lap ago. Once a
  /// turn, when nothing is left to claim.
  void prefetch_next() const {
    prefetch_for_write(producer_.buffer + (producer_.next & producer_.mask));
    prefetch_for_write(producer_.buffer + ((producer_.next + cache_line_bytes) & producer_.mask));
  }

  /// Bytes of claims, headers and padding that the consumer has not freed, as far as the producer knows.
  [[nodiscard]] std::size_t used_bytes() const { return capacity_bytes() - producer_.available(); }

  // Consumer.

  /// The oldest frame, the same one until release(); empty when there is none, and then all released room is free.
  [[nodiscard]] std::span<const std::byte> peek() {
    if (is_empty()) {
      flush();
      return {};
    }
    Header header = header_at(consumer_.next);
    if (header.bytes == padding_mark) [[unlikely]] {
      consumer_.next += header.stride;  // what it makes room for was published with it
      header = header_at(consumer_.next);
    }
    return {consumer_.buffer + (consumer_.next & consumer_.mask) + sizeof(Header), header.bytes};
  }

  /// Done with the frame that peek() returned; its room is free at the next flush() or empty peek().
  void release() {
    LOCKSTEP_ASSERT(consumer_.available() != 0, "release without a peeked frame");
    consumer_.next += header_at(consumer_.next).stride;
  }

  /// Gives the released room back to the producer; nothing when there is none.
  void flush() { consumer_.publish_if_behind(head_); }

  /// Whether peek() would find nothing. Before sleeping on the answer, set the sleep flag and put a seq_cst fence
  /// between the two; the producer needs one between publishing and reading the flag.
  [[nodiscard]] bool is_empty() {
    if (consumer_.available() != 0) return false;
    consumer_.load(tail_, 0);
    return consumer_.available() == 0;
  }

 private:
  struct Header {
    std::uint32_t bytes;   ///< of payload, or padding_mark
    std::uint32_t stride;  ///< from this header to the next
  };
  static_assert(sizeof(Header) == 8);
  static constexpr std::uint32_t padding_mark = UINT32_MAX;

  static constexpr std::align_val_t buffer_alignment{cache_line_bytes};
  struct Deallocate {
    void operator()(std::byte* buffer) const { ::operator delete(buffer, buffer_alignment); }
  };

  static std::byte* allocate(std::size_t capacity) {
    const std::size_t bytes = sizeof(Header) + capacity;
    void* const buffer = ::operator new(bytes, buffer_alignment);
    return static_cast<std::byte*>(std::memset(buffer, 0, bytes));
  }

  [[nodiscard]] static std::uint64_t stride_of(std::size_t bytes) {
    return (sizeof(Header) + bytes + frame_alignment - 1) & ~std::uint64_t{frame_alignment - 1};
  }

  std::byte* put_header(std::uint32_t bytes, std::uint64_t stride) {
    std::byte* const at = producer_.buffer + (producer_.next & producer_.mask);
    const Header header{bytes, static_cast<std::uint32_t>(stride)};
    std::memcpy(at, &header, sizeof header);
    producer_.next += stride;
    return at + sizeof header;
  }

  [[nodiscard]] Header header_at(std::uint64_t position) const {
    Header header;
    std::memcpy(&header, consumer_.buffer + (position & consumer_.mask), sizeof header);
    return header;
  }

  ring_detail::Side<std::byte> producer_;
  ring_detail::PublishedPosition tail_;
  ring_detail::Side<std::byte> consumer_;
  ring_detail::PublishedPosition head_;
  std::unique_ptr<std::byte, Deallocate> storage_;
};

}  // namespace lockstep
