// SPDX-License-Identifier: Apache-2.0
#pragma once

/// What the kernel and the CPU count while the service runs: perf events of chosen threads, and the machine's totals of
/// interrupts and CPU time. perf's tracepoints cost something at each event, so a stretch they count in is not timed.

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/descriptor.hpp"

namespace lockstep::bench {

/// All threads that a process has now.
[[nodiscard]] std::vector<pid_t> threads_of(pid_t process);

/// Nothing in a field: this host does not count it, or not for this user.
struct EventCounts {
  std::optional<std::uint64_t> system_calls;   ///< of the server
  std::optional<std::uint64_t> ipis;           ///< sent by server or client to one CPU (ipi:ipi_send_cpu)
  std::optional<std::uint64_t> io_uring_ipis;  ///< of these, the ones that call a thread to its completions
  std::optional<std::uint64_t> l1d_misses;     ///< of the server, loads
};

/// One thread; one stretch at a time.
class EventCounters {
 public:
  /// Looks for tracepoints. Where tracefs is not mounted and this process may, it mounts it for itself alone, in a
  /// mount namespace of its own.
  EventCounters();

  /// Where each figure comes from, or why it is missing: a line each.
  [[nodiscard]] std::string describe() const;

  /// Counts what these threads do from now on.
  void start(std::span<const pid_t> server, std::span<const pid_t> client);
  [[nodiscard]] EventCounts stop();

 private:
  struct Event {
    std::uint32_t type = 0;
    std::uint64_t config = 0;
    std::string filter;  ///< of a tracepoint's fields; empty for all
  };
  /// An event counted in several threads.
  struct Counter {
    std::optional<Event> event;  ///< nothing: this host does not have it
    std::vector<Descriptor> threads;
    bool complete = false;  ///< all threads are counted

    void open(std::span<const pid_t> tasks);
    [[nodiscard]] std::optional<std::uint64_t> close();
  };

  Counter system_calls_;
  Counter ipis_;
  Counter io_uring_ipis_;
  Counter l1d_misses_;
};

/// Of the whole machine, since it started.
struct MachineTotals {
  std::uint64_t reschedule_interrupts = 0;  ///< RES of /proc/interrupts
  std::uint64_t call_interrupts = 0;        ///< CAL
  double busy_seconds = 0;                  ///< of all CPUs, by any program
  double stolen_seconds = 0;                ///< by the hypervisor
  double all_seconds = 0;                   ///< busy, stolen or idle
};
[[nodiscard]] MachineTotals read_machine_totals();

}  // namespace lockstep::bench
