// SPDX-License-Identifier: Apache-2.0

/// How long a node takes to start: a journal (--mib, 4096 by the goal) behind a snapshot. Beside it the two things a
/// start cannot avoid, each alone: reading the same files past the page cache, in order, and executing the same batches
/// out of memory. Each is measured with cold files, in turn, as often as the time allows.

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <functional>
#include <thread>
#include <vector>

#include "base/clock.hpp"
#include "bench/recovery/history.hpp"
#include "bench/snapshot/ledger.hpp"
#include "bench/support/need.hpp"
#include "bench/support/options.hpp"
#include "bench/support/report.hpp"
#include "bench/support/results.hpp"
#include "journal/posix_disk.hpp"
#include "runtime/history_start.hpp"
#include "runtime/runner.hpp"

namespace lockstep::bench {
namespace {

constexpr double default_mib = 1024;

double seconds_of(const std::function<void()>& work) {
  const std::int64_t started_ns = SystemClock{}.steady_ns();
  work();
  return static_cast<double>(SystemClock{}.steady_ns() - started_ns) / 1e9;
}

void read_past_cache(const std::string& directory) {
  PosixDisk disk;
  AlignedBuffer piece(std::size_t{4} << 20U);
  for (const std::string& path : files_of(directory)) {
    const FileId file = need(disk.open(path, OpenMode::write_direct));
    std::uint64_t offset = 0;
    while (const std::size_t got = need(disk.read(file, offset, piece.span()))) offset += got;
    disk.close(file);
  }
}

/// The batches behind the snapshot, in memory.
struct Batches {
  explicit Batches(const std::string& directory) {
    PosixDisk disk;
    auto reader = need(JournalReader::open(
        disk, directory, need(find_history_start(disk, directory, StartFrom::newest_snapshot)).position.index + 1));
    while (const auto batch = need(reader.next())) {
      headers.push_back(*batch->header);
      payloads.emplace_back(batch->payload.begin(), batch->payload.end());
    }
  }
  std::vector<BatchHeader> headers;
  std::vector<std::vector<std::byte>> payloads;
};

/// The executor on a thread of its own, as a restart has it, fed from memory.
double execute(const std::string& directory, const Batches& batches) {
  PosixDisk disk;
  auto start = need(find_history_start(disk, directory, StartFrom::newest_snapshot));
  auto execution = need(start.execution(LedgerNode::application(), LedgerNode::genesis(),
                                        {.executors = 1, .slabs = 16, .max_batch_bytes = 256U << 10}));
  SystemClock clock;
  Runner runner({.name = "executor", .spin_ns = 20'000}, clock, nullptr, {&execution->agent(0)});
  runner.start();
  BatchPool& pool = execution->pool();
  const double seconds = seconds_of([&] {
    for (std::size_t i = 0; i < batches.headers.size();) {
      const BatchHeader& header = batches.headers[i];
      if (pool.can_open(header.index)) {
        std::memcpy(pool.payload(header.index), batches.payloads[i].data(), batches.payloads[i].size());
        pool.header(header.index) = header;
        pool.publish_sealed(header.index);
        pool.written().publish(header.index);
        pool.committed().publish(header.index);
        ++i;
      } else {
        std::this_thread::yield();
      }
      while (execution->board().poll()) {
      }
      runner.notify();
    }
    while (pool.executed_by_all() < pool.sealed()) {
      while (execution->board().poll()) {
      }
      std::this_thread::yield();
    }
  });
  runner.request_stop();
  runner.join();
  return seconds;
}

double median_of(std::vector<double> values) {
  std::ranges::sort(values);
  return values[values.size() / 2];
}

int run(const Options& options) {
  const double mib = options.mib == 0 ? default_mib : options.mib;
  const std::string directory = std::filesystem::temp_directory_path() / fmt::format("lockstep-bench-{}", getpid());
  fmt::print("{}", describe_machine());
  make_history(directory, static_cast<std::uint64_t>(mib * 1048576));
  double total_mib = 0;
  for (const std::string& path : files_of(directory))
    total_mib += static_cast<double>(std::filesystem::file_size(path)) / 1048576;
  const Batches batches(directory);
  std::vector<double> reads;
  std::vector<double> executions;
  std::vector<double> starts;
  const std::int64_t started_ns = SystemClock{}.steady_ns();
  do {
    drop_from_cache(directory);
    reads.push_back(seconds_of([&] { read_past_cache(directory); }));
    executions.push_back(execute(directory, batches));
    drop_from_cache(directory);
    starts.push_back(seconds_of([&] { start_node(directory); }));
  } while (static_cast<double>(SystemClock{}.steady_ns() - started_ns) / 1e9 < options.seconds);
  std::filesystem::remove_all(directory);
  const double slower = std::max(median_of(reads), median_of(executions));
  const double messages = static_cast<double>(batches.headers.back().first_seq - batches.headers.front().first_seq);
  Table table({"seconds", "median", "best"});
  const auto row = [&](const char* name, const std::vector<double>& values) {
    table.add_row({name, fmt::format("{:.2f}", median_of(values)), fmt::format("{:.2f}", std::ranges::min(values))});
  };
  row("reading the files, past the page cache", reads);
  row("executing the batches, out of memory", executions);
  row("a node's start", starts);
  fmt::print("\n{:.0f} MiB of segments and snapshots, {:.1f} million messages behind the snapshot, {} rounds\n{}",
             total_mib, messages / 1e6, starts.size(), table.text());
  const double ratio = median_of(starts) / slower;
  fmt::print("goal: at most 1.5 times the slower of the two; median {:.2f}: {}\n", ratio,
             ratio <= 1.5 ? "met" : "not met");
  Results(options.out, "recovery").figures(table);
  return 0;
}

}  // namespace
}  // namespace lockstep::bench

int main(int argc, char** argv) {
  return lockstep::bench::run(lockstep::bench::parse_options(
      argc, argv, "A node's start from a snapshot and the journal behind it, against reading and executing alone.",
      30));
}
