// SPDX-License-Identifier: Apache-2.0
#pragma once

/// Unanswered: the frames that a client sent and has no answer to yet, by number: what it sends again over its next
/// connection, and how far back it still wants to be answered. One thread.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "lockstep/wire.hpp"

namespace lockstep::client {

/// Writes a frame behind what is in `output`.
inline void append_frame(std::string& output, const wire::FrameHeader& frame, std::span<const std::byte> payload) {
  wire::FrameHeader header = frame;
  header.length = static_cast<std::uint32_t>(payload.size());
  output.append(reinterpret_cast<const char*>(&header), sizeof header);
  output.append(reinterpret_cast<const char*>(payload.data()), payload.size());
}

class Unanswered {
 public:
  void add(const wire::FrameHeader& header, std::span<const std::byte> payload) {
    frames_.emplace_hint(frames_.end(), header.request,
                         Frame{header, {reinterpret_cast<const char*>(payload.data()), payload.size()}});
    if (header.kind == wire::FrameKind::request) requests_.insert(requests_.end(), header.request);
  }
  /// Whether it was there.
  bool erase(std::uint64_t number) {
    requests_.erase(number);
    return frames_.erase(number) != 0;
  }
  [[nodiscard]] bool contains(std::uint64_t number) const { return frames_.contains(number); }
  [[nodiscard]] bool empty() const { return frames_.empty(); }
  [[nodiscard]] std::size_t size() const { return frames_.size(); }

  /// How far below `number`, which is not answered itself, the least request lies that is not.
  [[nodiscard]] std::uint64_t distance(std::uint64_t number) const {
    return requests_.empty() ? 0 : number - std::min(number, *requests_.begin());
  }

  /// All of it once more, in the order of the numbers.
  void append_to(std::string& output) const {
    for (const auto& [number, frame] : frames_) {
      wire::FrameHeader header = frame.header;
      if (header.kind == wire::FrameKind::request) header.ack_distance = static_cast<std::uint16_t>(distance(number));
      append_frame(output, header, std::as_bytes(std::span(frame.payload)));
    }
  }

  /// Takes out all requests, though not queries; their numbers.
  std::vector<std::uint64_t> take_requests() {
    std::vector<std::uint64_t> taken(requests_.begin(), requests_.end());
    for (const std::uint64_t number : taken) frames_.erase(number);
    requests_.clear();
    return taken;
  }

 private:
  struct Frame {
    wire::FrameHeader header;
    std::string payload;
  };
  std::map<std::uint64_t, Frame> frames_;
  std::set<std::uint64_t> requests_;
};

}  // namespace lockstep::client
