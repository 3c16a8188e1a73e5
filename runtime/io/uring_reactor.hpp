// SPDX-License-Identifier: Apache-2.0
#pragma once

/// UringReactor: a Reactor on one io_uring. It may be made, and told to listen, in one thread and turned in another;
/// the first turn() or wait() makes its caller the owner, and the kernel itself refuses any other from then on.

#include <thread>

#include "runtime/io/reactor.hpp"
#include "runtime/io/reactor_counts.hpp"
#include "runtime/io/ring.hpp"
#include "runtime/io/uring_disk.hpp"
#include "runtime/io/uring_network.hpp"
#include "runtime/io/waker.hpp"

namespace lockstep::io {

class UringReactor final : public Reactor {
 public:
  /// An error with the errno's cause and remedy when this host does not give a ring; see is_forbidden().
  [[nodiscard]] static Result<std::unique_ptr<Reactor>> make(const ReactorOptions& options);

  explicit UringReactor(const ReactorOptions& options);
  ~UringReactor() override;

  Network& network() override { return network_; }
  Disk& disk() override { return disk_; }
  int turn() override;
  void wait(std::int64_t timeout_ns) override;
  void wake() override { waker_.wake(); }
  std::string_view backend() const override { return "io_uring"; }
  ReactorCounters counters() const override;

 private:
  [[nodiscard]] Result<void> start(const ReactorOptions& options);
  void bind_owner();
  void arm_wake();
  void dispatch(const RingCompletion& completion);

  std::thread::id owner_;
  ReactorCounts counts_;
  Waker waker_;
  std::uint64_t wake_count_ = 0;  ///< the kernel writes the eventfd's value here
  Ring ring_;
  UringNetwork network_;
  UringDisk disk_;
};

}  // namespace lockstep::io
