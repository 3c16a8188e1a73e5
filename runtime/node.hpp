// SPDX-License-Identifier: Apache-2.0
#pragma once

/// Node: a whole lockstep node: recovered journal, executors brought up to its end, perimeter, sequencer, and the
/// threads that run them. open() ends with the node ready and its ports bound; start() lets its threads go; stop()
/// drains what is in flight and makes it durable.
///
/// Clock and I/O are handed in: nothing in here knows whether they are real.
///
/// open, start, turn, stop and the destructor belong to one thread; failed() and the admin pages are for any.

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "base/clock.hpp"
#include "base/error.hpp"
#include "lockstep/application.hpp"
#include "lockstep/resp.hpp"
#include "runtime/config.hpp"
#include "runtime/io/reactor.hpp"

namespace lockstep {

/// Makes one thread's I/O. Called in open(), once for each perimeter; the first also has the journal's disk.
using ReactorFactory = std::function<Result<std::unique_ptr<io::Reactor>>()>;

/// Called now and then while history is executed at the start: the last seq handed to the executors, and the last one
/// there is. On the opening thread. False gives the start up: open() ends with ErrorCode::incomplete, and the directory
/// is as after a crash at the start.
using StartProgress = std::function<bool(std::uint64_t seq, std::uint64_t last_seq)>;

class Node {
 public:
  /// Recovers the data directory, executes its history, compares it with the roots recorded beside it
  /// (ErrorCode::diverged when they differ), binds the ports. `resp` null: the actors do not speak to Redis clients.
  /// What is passed by reference or pointer outlives the node.
  [[nodiscard]] static Result<std::unique_ptr<Node>> open(const Application& application, const resp::Application* resp,
                                                          const NodeConfig& config, Clock& clock,
                                                          const ReactorFactory& make_reactor,
                                                          const StartProgress& progress = {});
  ~Node();
  Node(const Node&) = delete;
  Node& operator=(const Node&) = delete;

  /// One turn of every agent on the calling thread, instead of start(): how a simulator runs a node, with its own clock
  /// and reactor. Needs the layout "one". Returns how much was done.
  int turn();

  void start();
  /// Stops accepting, answers what is in flight, closes connections, makes everything durable. Bounded by
  /// shutdown_timeout_ms; past it what is unanswered stays so, and a line of the log says how much that is. An Error
  /// when a write failed.
  [[nodiscard]] Result<void> stop();

  /// A fault that ended the node's work (a failed write or sync); it acknowledges nothing any more and should be
  /// stopped.
  [[nodiscard]] bool failed() const;
  [[nodiscard]] const Error& failure() const;

  [[nodiscard]] const io::Endpoint& native_endpoint() const;
  /// Port 0 when RESP is not served.
  [[nodiscard]] const io::Endpoint& resp_endpoint() const;
  /// Port 0 when there is no admin address.
  [[nodiscard]] io::Endpoint admin_endpoint() const;

  /// One line for a log: what was recovered and how the threads are laid out.
  [[nodiscard]] std::string summary() const;

 private:
  struct Parts;
  explicit Node(std::unique_ptr<Parts> parts);
  std::unique_ptr<Parts> parts_;
};

}  // namespace lockstep
