// SPDX-License-Identifier: Apache-2.0
#pragma once

/// Reactor: one thread's I/O, under a single place to sleep. Its Network and its Disk share whatever the thread waits
/// in (one io_uring, or one epoll), so a thread that hosts perimeter and journal sleeps until either has something to
/// do.
///
/// turn() and wait() belong to the owning thread (the first one to call turn()); wake() may be called from any thread.

#include <cstdint>
#include <memory>
#include <string_view>

#include "base/error.hpp"
#include "journal/disk.hpp"
#include "runtime/io/network.hpp"

namespace lockstep::io {

class Reactor {
 public:
  virtual ~Reactor() = default;
  [[nodiscard]] virtual Network& network() = 0;
  [[nodiscard]] virtual Disk& disk() = 0;
  /// Submits what is queued and gathers what has completed, without blocking. Returns how many completions it saw.
  virtual int turn() = 0;
  /// Sleeps until a completion, a wake(), or `timeout_ns` (< 0: no limit), then returns; the next turn() gathers.
  virtual void wait(std::int64_t timeout_ns) = 0;
  /// Ends a wait() under way or to come. Any thread.
  virtual void wake() = 0;
  /// "io_uring" or "epoll", for logs and metrics.
  [[nodiscard]] virtual std::string_view backend() const = 0;
};

enum class Backend { automatic, uring, epoll };

/// Makes a reactor. `automatic` falls back from io_uring to epoll only where the host forbids it (EPERM, ENOSYS), with
/// one loud line that names the cause and the remedy; `uring` fails with that text instead.
[[nodiscard]] Result<std::unique_ptr<Reactor>> make_reactor(Backend backend);

}  // namespace lockstep::io
