// SPDX-License-Identifier: Apache-2.0
#pragma once

/// FrameDeadlines: the connections that owe the rest of something: of their hello, or of a frame that has begun, and by
/// when each must have sent it. All are given the same time, so the list is in the order of its deadlines, and nothing
/// is searched or allocated. It runs through the connections themselves, which must be removed before they go. Belongs
/// to one perimeter and its thread.

#include <cstdint>
#include <limits>

#include "runtime/agents/connection.hpp"

namespace lockstep {

class FrameDeadlines {
 public:
  explicit FrameDeadlines(std::int64_t allowed_ns) : allowed_ns_(allowed_ns) {}

  /// From now on it has the time that all are given, whatever it was left before.
  void start(Connection& connection, std::int64_t now_ns) {
    stop(connection);
    connection.frame_by_ns = now_ns + allowed_ns_;
    connection.owing_before = last_;
    (last_ != nullptr ? last_->owing_behind : first_) = &connection;
    last_ = &connection;
  }
  void stop(Connection& connection) {
    if (connection.frame_by_ns == 0) return;
    Connection* const before = connection.owing_before;
    Connection* const behind = connection.owing_behind;
    (before != nullptr ? before->owing_behind : first_) = behind;
    (behind != nullptr ? behind->owing_before : last_) = before;
    connection.owing_before = connection.owing_behind = nullptr;
    connection.frame_by_ns = 0;
  }
  /// One whose time is up, or nullptr.
  [[nodiscard]] Connection* overdue(std::int64_t now_ns) const {
    return first_ != nullptr && first_->frame_by_ns <= now_ns ? first_ : nullptr;
  }
  [[nodiscard]] std::int64_t next_ns() const {
    return first_ != nullptr ? first_->frame_by_ns : std::numeric_limits<std::int64_t>::max();
  }

 private:
  std::int64_t allowed_ns_;
  Connection* first_ = nullptr;
  Connection* last_ = nullptr;
};

}  // namespace lockstep
