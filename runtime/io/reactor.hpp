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

/// What a reactor has counted since it was made; for metrics and tests.
struct ReactorCounters {
  std::uint64_t enters = 0;               ///< system calls that submitted, gathered or slept
  std::uint64_t sleeps = 0;               ///< waits that did go to the kernel
  std::uint64_t wakes = 0;                ///< wake() calls that found the owner asleep and cost a system call
  std::uint64_t completions = 0;          ///< completions or readiness events seen
  std::uint64_t queue_overflows = 0;      ///< turns in which the completion queue was found overflown
  std::uint64_t buffer_shortages = 0;     ///< times a connection had to wait for a receive buffer
  std::uint64_t receives_rearmed = 0;     ///< multishot receives started again after the kernel ended them
  std::uint64_t partial_sends = 0;        ///< sends whose rest had to be sent again
  std::uint64_t accept_pauses = 0;        ///< times a listener rested because descriptors or memory ran out
  std::uint64_t refused_connections = 0;  ///< closed at once because max_connections was reached
};

/// Destroyed by its owning thread, or by any thread once the owner has ended. Submitted writes have then finished.
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
  /// Any thread; each figure is as its owner left it last.
  [[nodiscard]] virtual ReactorCounters counters() const { return {}; }
};

enum class Backend { automatic, uring, epoll };

struct ReactorOptions {
  std::uint32_t max_connections = 4096;       ///< one more is accepted and closed at once
  std::uint32_t receive_buffers = 512;        ///< a power of two, at most 32768; shared by all connections
  std::uint32_t receive_buffer_bytes = 8192;  ///< a multiple of 64
  std::uint32_t submission_entries = 1024;    ///< io_uring only
  std::uint32_t completion_entries = 32768;   ///< io_uring only; the kernel's limit (65536) clamps it
};

/// Makes a reactor. `automatic` falls back from io_uring to epoll only where the host forbids it (EPERM, ENOSYS), with
/// one loud line that names the cause and the remedy; `uring` fails with that text instead.
[[nodiscard]] Result<std::unique_ptr<Reactor>> make_reactor(Backend backend, const ReactorOptions& options = {});

}  // namespace lockstep::io
