// SPDX-License-Identifier: Apache-2.0
#pragma once

/// FrameReader: cuts a node's stream of bytes into frames. The payload is where it arrived, so it may lie on any
/// address; it is valid until the next call. One thread.

#include <cstddef>
#include <cstring>
#include <memory>
#include <optional>
#include <span>

#include "lockstep/wire.hpp"

namespace lockstep::client {

struct Frame {
  wire::FrameHeader header;
  std::span<const std::byte> payload;
};

class FrameReader {
 public:
  /// A place for more bytes, at least one; followed by added().
  [[nodiscard]] std::span<std::byte> space() {
    if (begin_ == end_) begin_ = end_ = 0;
    if (capacity_ - end_ < least_space) make_space();
    return {buffer_.get() + end_, capacity_ - end_};
  }
  void added(std::size_t bytes) { end_ += bytes; }

  /// The next whole frame, if there is one.
  [[nodiscard]] std::optional<Frame> next() {
    Frame frame;
    if (end_ - begin_ < sizeof frame.header) return std::nullopt;
    std::memcpy(&frame.header, buffer_.get() + begin_, sizeof frame.header);
    const std::size_t bytes = sizeof frame.header + frame.header.length;
    if (end_ - begin_ < bytes) return std::nullopt;
    frame.payload = {buffer_.get() + begin_ + sizeof frame.header, frame.header.length};
    begin_ += bytes;
    return frame;
  }

 private:
  static constexpr std::size_t least_space = 16 * 1024;

  void make_space() {
    const std::size_t kept = end_ - begin_;
    if (kept + least_space > capacity_ / 2) {
      const std::size_t capacity = (kept + least_space) * 2;
      auto larger = std::make_unique_for_overwrite<std::byte[]>(capacity);
      if (kept != 0) std::memcpy(larger.get(), buffer_.get() + begin_, kept);
      buffer_ = std::move(larger);
      capacity_ = capacity;
    } else {
      std::memmove(buffer_.get(), buffer_.get() + begin_, kept);
    }
    begin_ = 0;
    end_ = kept;
  }

  std::unique_ptr<std::byte[]> buffer_;
  std::size_t capacity_ = 0;
  std::size_t begin_ = 0;
  std::size_t end_ = 0;
};

}  // namespace lockstep::client
