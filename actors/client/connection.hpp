// SPDX-License-Identifier: Apache-2.0
#pragma once

/// Client::Connection: a client's session, and the socket it goes over at the moment. When the socket is lost it makes
/// another, resumes the session, and sends again what is unanswered, under the same numbers: the node runs each of them
/// once. One thread.
///
///     dial ──▶ hello(session, secret) ─┬─ hello_ok ──▶ all that is unanswered ──▶ as before
///                                      └─ no_session ─▶ unanswered requests end as unknown ──▶ hello(new session)
///
/// The session begins with the first request: a client that only asks queries has none.

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <unordered_map>

#include "client/frame_reader.hpp"
#include "client/socket.hpp"
#include "client/unanswered.hpp"
#include "lockstep/client.hpp"

namespace lockstep {

class Client::Connection {
 public:
  using Deadline = client::Deadline;

  explicit Connection(const ClientOptions& options) : options_(options) {}

  /// The first connection; once, and without trying again.
  [[nodiscard]] ClientResult<void> open();
  [[nodiscard]] ClientResult<std::uint64_t> queue(wire::FrameHeader header, std::span<const std::byte> payload);
  [[nodiscard]] ClientResult<void> flush();
  [[nodiscard]] ClientResult<Answer> collect(std::uint64_t request);
  [[nodiscard]] ClientResult<Answer> collect_any(std::uint64_t* failed);
  void abandon(std::uint64_t request);
  void say_goodbye();

  [[nodiscard]] std::size_t in_flight() const { return unanswered_.size() + arrived_.size(); }
  [[nodiscard]] const wire::HelloOk& node() const { return node_; }
  [[nodiscard]] MessageBuilder& builder() { return *builder_; }

 private:
  [[nodiscard]] Deadline request_deadline() const;
  [[nodiscard]] ClientResult<void> turn(bool wait, Deadline deadline);
  [[nodiscard]] ClientResult<void> wait_for_window(Deadline deadline);
  [[nodiscard]] ClientResult<void> reconnect(Deadline deadline);
  [[nodiscard]] bool dial(Deadline deadline);
  [[nodiscard]] bool greet(Deadline deadline);
  [[nodiscard]] ClientResult<void> open_session(Deadline deadline);
  void renew_idle_session();
  [[nodiscard]] bool write_some();
  [[nodiscard]] bool read_some();
  void take(const client::Frame& frame);
  void take_error(const client::Frame& frame);
  void lose_socket(std::string reason);
  void lose_session();
  void end(ClientError error);
  [[nodiscard]] ClientResult<Answer> hand_out(std::uint64_t request);

  ClientOptions options_;
  std::optional<client::ClientSocket> socket_;
  client::FrameReader reader_;
  std::string output_;
  std::size_t written_ = 0;         ///< of output_
  bool greeted_ = false;            ///< over this socket
  bool asked_for_session_ = false;  ///< over this socket
  bool needs_session_ = false;      ///< there has been a request
  std::string lost_because_;

  wire::HelloOk node_;         ///< of the last hello
  std::uint64_t session_ = 0;  ///< to resume; 0: a new one
  std::optional<MessageBuilder> builder_;
  std::uint64_t last_request_ = 0;
  std::chrono::steady_clock::time_point last_queued_;
  client::Unanswered unanswered_;
  std::unordered_map<std::uint64_t, ClientResult<Answer>> arrived_;
  std::optional<ClientError> over_;  ///< what no other connection would mend; every later call gets it
};

}  // namespace lockstep
