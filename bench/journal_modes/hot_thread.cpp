// SPDX-License-Identifier: Apache-2.0
#include "bench/journal_modes/hot_thread.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>

#include "base/clock.hpp"
#include "base/descriptor.hpp"
#include "bench/support/cpu.hpp"
#include "bench/support/need.hpp"

namespace lockstep::bench {
namespace {

double ms_since(std::int64_t began_ns) {
  return static_cast<double>(SystemClock{}.steady_ns() - began_ns) / 1e6;
}

/// `left_out` has the numbers of the reports that were not taken, ascending.
void check_file(const std::string& path, std::span<const ExecutionReport> reports,
                std::span<const std::uint64_t> left_out) {
  const Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  std::vector<ExecutionReport> found(4096);
  std::size_t next = 0;
  std::size_t bytes = 0;
  while (const ssize_t got = ::read(file.get(), found.data(), found.size() * sizeof(ExecutionReport))) {
    if (got < 0 || static_cast<std::size_t>(got) % sizeof(ExecutionReport) != 0)
      give_up(fmt::format("{} does not hold whole reports", path));
    bytes += static_cast<std::size_t>(got);
    for (std::size_t i = 0; i < static_cast<std::size_t>(got) / sizeof(ExecutionReport); ++i, ++next) {
      for (; !left_out.empty() && next < reports.size() && reports[next].number() == left_out.front(); ++next)
        left_out = left_out.subspan(1);
      if (next >= reports.size() || std::memcmp(&found[i], &reports[next], sizeof(ExecutionReport)) != 0)
        give_up(fmt::format("{}: report {} is not as it was appended", path, next + 1));
    }
  }
  if (next + left_out.size() != reports.size())
    give_up(fmt::format("{}: {} bytes, of {} reports {} are missing", path, bytes, reports.size(),
                        reports.size() - next - left_out.size()));
  std::filesystem::remove(path);
}

}  // namespace

HotRun run_naive_write(const Load& load, const std::string& directory) {
  const std::string path = directory + "/naive";
  const Descriptor file(::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644));
  if (!file.is_open()) give_up(fmt::format("cannot make {}", path));
  pin_to_cpu(allowed_cpus().front());
  HotRun run;
  const std::int64_t began_ns = SystemClock{}.steady_ns();
  append_all(load, run.append_ns, [&](const ExecutionReport& report) {
    if (::write(file.get(), &report, sizeof report) != sizeof report) give_up(fmt::format("cannot write {}", path));
  });
  run.drained_ms = ms_since(began_ns);
  check_file(path, load.reports, {});
  return run;
}

HotRun run_record_log(const Load& load, const std::string& directory, RecordLogOptions options) {
  options.path = directory + "/log";
  pin_to_cpu(allowed_cpus().back());  // the log's thread begins where its maker is
  auto opened = RecordLog::open(options);
  if (!opened) give_up(opened.error().message);
  pin_to_cpu(allowed_cpus().front());
  RecordLog& log = **opened;
  RecordLog::Producer& producer = log.producer(0);
  std::vector<std::uint64_t> left_out(load.reports.size());
  std::size_t dropped = 0;
  HotRun run;
  const std::int64_t began_ns = SystemClock{}.steady_ns();
  append_all(load, run.append_ns, [&](const ExecutionReport& report) {
    if (producer.append(std::as_bytes(std::span(&report, 1))) != RecordLog::Append::taken)
      left_out[dropped++] = report.number();
  });
  if (const auto flushed = log.flush(); !flushed) give_up(flushed.error().message);
  run.drained_ms = ms_since(began_ns);
  const RecordLogCounters counters = log.counters();
  run.stalls = counters.stalls;
  run.longest_stall_ns = counters.longest_stall_ns;
  run.dropped = counters.dropped_records;
  if (dropped != counters.dropped_records) give_up("the log counted other drops than its producer");
  check_file(options.path, load.reports, std::span(left_out).first(dropped));
  return run;
}

}  // namespace lockstep::bench
