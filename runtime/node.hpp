// SPDX-License-Identifier: Apache-2.0
#pragma once

/// Node: a whole lockstep node: recovered journal, executors brought up to its end, perimeter, sequencer, and the
/// threads that run them. open() ends with the node ready and its ports bound; start() lets its threads go; stop()
/// drains what is in flight and makes it durable.
///
/// open, start, stop and the destructor belong to one thread; failed() and the admin pages are for any.

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>

#include "base/clock.hpp"
#include "base/error.hpp"
#include "lockstep/application.hpp"
#include "runtime/config.hpp"
#include "runtime/io/network.hpp"

namespace lockstep {

class Node {
 public:
  /// Recovers the data directory, executes its history, compares it with the roots recorded beside it
  /// (ErrorCode::diverged when they differ), binds the ports. `application` and `clock` outlive the node.
  [[nodiscard]] static Result<std::unique_ptr<Node>> open(const Application& application, const NodeConfig& config,
                                                          Clock& clock);
  ~Node();
  Node(const Node&) = delete;
  Node& operator=(const Node&) = delete;

  void start();
  /// Stops accepting, answers what is in flight, closes connections, makes everything durable. Bounded by
  /// shutdown_timeout_ms; past it what is unanswered stays so. An Error when not all could be made durable.
  [[nodiscard]] Result<void> stop();

  /// A fault that ended the node's work (a failed write or sync); it acknowledges nothing any more and should be
  /// stopped.
  [[nodiscard]] bool failed() const;
  [[nodiscard]] const Error& failure() const;

  [[nodiscard]] const io::Endpoint& native_endpoint() const;
  /// Port 0 when RESP is not served.
  [[nodiscard]] const io::Endpoint& resp_endpoint() const;
  [[nodiscard]] const io::Endpoint& admin_endpoint() const;
  [[nodiscard]] std::string_view io_backend() const;

  /// One line for a log: what was recovered and how the threads are laid out.
  [[nodiscard]] std::string summary() const;

 private:
  struct Parts;
  explicit Node(std::unique_ptr<Parts> parts);
  std::unique_ptr<Parts> parts_;
};

}  // namespace lockstep
