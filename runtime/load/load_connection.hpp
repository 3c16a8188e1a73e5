// SPDX-License-Identifier: Apache-2.0
#pragma once

/// LoadConnection: one connection of a load run: its socket, what waits to be written, and when each request in flight
/// was planned. Request numbers are dense, as a session's are; a request is not sent while one a whole window older is
/// unanswered. One thread.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "client/frame_reader.hpp"
#include "client/socket.hpp"
#include "runtime/load/load.hpp"

namespace lockstep {

class LoadConnection {
 public:
  [[nodiscard]] static Result<LoadConnection> open(const LoadOptions& options);

  [[nodiscard]] bool can_send() const {
    return !over_ && in_flight_ < depth_ && next_ - oldest_ < window_ && planned_ns_[slot(next_)] == unused;
  }
  void send(const LoadRequest& request, std::int64_t planned_ns);
  /// Writes what the kernel takes; false when some is left.
  bool flush();
  /// Ends the session; once all is answered.
  void say_goodbye();

  struct Answer {
    std::int64_t planned_ns = 0;
    bool is_reply = false;
    wire::ErrorBody error;  ///< if it is none
    std::string_view text;  ///< of the error
  };
  /// Reads what has arrived, and the answers in it one by one.
  void receive();
  [[nodiscard]] std::optional<Answer> next_answer();

  [[nodiscard]] std::uint32_t in_flight() const { return in_flight_; }
  [[nodiscard]] int descriptor() const { return socket_.descriptor(); }
  /// The connection has ended, and why.
  [[nodiscard]] bool is_over() const { return over_.has_value(); }
  [[nodiscard]] const std::string& reason() const { return *over_; }

 private:
  explicit LoadConnection(client::ClientSocket socket) : socket_(std::move(socket)) {}
  [[nodiscard]] Result<void> greet(client::Deadline deadline, std::uint32_t depth);
  [[nodiscard]] std::size_t slot(std::uint64_t request) const { return request & (planned_ns_.size() - 1); }
  void append(const wire::FrameHeader& header, std::span<const std::byte> payload);

  static constexpr std::int64_t unused = INT64_MIN;

  client::ClientSocket socket_;
  client::FrameReader reader_;
  std::string output_;
  std::size_t written_ = 0;
  std::uint32_t depth_ = 0;
  std::uint32_t window_ = 0;  ///< as the node's reply_window
  std::uint32_t in_flight_ = 0;
  std::uint64_t next_ = 1;
  std::uint64_t oldest_ = 1;  ///< in flight, or next_
  std::vector<std::int64_t> planned_ns_;
  std::optional<std::string> over_;
};

}  // namespace lockstep
