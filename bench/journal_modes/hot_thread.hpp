// SPDX-License-Identifier: Apache-2.0
#pragma once

/// What it costs a thread to leave its execution reports with each kind of log: the time of every single append, by the
/// CPU's counter, and how long it took until all was written. Each run checks the file against the reports, byte by
/// byte, and ends the program when they differ.
///
/// The hot thread runs on the first CPU, the log's threads on the last one.

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/histogram.hpp"
#include "bench/support/tsc.hpp"
#include "execution_report.hpp"
#include "runtime/log/record_log.hpp"

namespace lockstep::bench {

/// The matching engine's: 128 bytes.
using matching::ExecutionReport;

/// One run of one way to log.
struct HotRun {
  Histogram append_ns;
  double drained_ms = 0;  ///< from the first append until all is written
  std::uint64_t stalls = 0;
  std::uint64_t longest_stall_ns = 0;
  std::uint64_t dropped = 0;
};

/// How the reports come: `period_ns` from one to the next, 0: as fast as they are taken.
struct Load {
  std::span<const ExecutionReport> reports;
  double period_ns = 0;
  TickCalibration clock;

  [[nodiscard]] Load first(std::size_t count) const { return {reports.first(count), period_ns, clock}; }
};

/// A write(2) for each report.
[[nodiscard]] HotRun run_naive_write(const Load& load, const std::string& directory);

/// A RecordLog; the options' path is set here.
[[nodiscard]] HotRun run_record_log(const Load& load, const std::string& directory, RecordLogOptions options);

/// lockstep's journal, durability fsync: what a perimeter does for a request once it is framed, which is to check it,
/// pack and stamp it, and to seal batches; the journal writes on the other CPU.
[[nodiscard]] HotRun run_journal(const Load& load, const std::string& directory);

/// Appends all of the load's reports, and times each append.
template <class Append>
[[gnu::noinline]] void append_all(const Load& load, Histogram& append_ns, Append&& append) {
  const auto period = static_cast<std::uint64_t>(load.period_ns * load.clock.ticks_per_ns);
  std::uint64_t planned = ticks();
  for (const ExecutionReport& report : load.reports) {
    if (period != 0) {
      planned += period;
      while (ticks() < planned) continue;
    }
    const std::uint64_t began = ticks();
    append(report);
    const std::uint64_t took = ticks() - began;
    append_ns.add(static_cast<std::uint64_t>(static_cast<double>(took) / load.clock.ticks_per_ns));
  }
}

}  // namespace lockstep::bench
