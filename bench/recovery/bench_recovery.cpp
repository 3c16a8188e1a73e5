// SPDX-License-Identifier: Apache-2.0

/// How long a node takes to start: a journal (--mib, 4096 by the goal) behind a snapshot. Beside it the two things a
/// start cannot avoid, each alone: reading the same files past the page cache, in order, and executing the same batches
/// out of memory. Each is measured with cold files, in turn, as often as the time allows.

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <thread>
#include <vector>

#include "base/clock.hpp"
#include "bench/snapshot/ledger.hpp"
#include "bench/support/options.hpp"
#include "bench/support/report.hpp"
#include "bench/support/results.hpp"
#include "journal/directory.hpp"
#include "journal/posix_disk.hpp"
#include "runtime/agents/journal_agent.hpp"
#include "runtime/agents/snapshot_agent.hpp"
#include "runtime/history_start.hpp"
#include "runtime/node.hpp"
#include "runtime/runner.hpp"

namespace lockstep::bench {
namespace {

constexpr double default_mib = 1024;

template <class T>
T need(Result<T> result) {
  if (!result) {
    fmt::print(stderr, "bench_recovery: {}\n", result.error().message);
    std::exit(1);
  }
  if constexpr (!std::is_void_v<T>) return std::move(*result);
}

/// Writes the directory: some messages, a snapshot, then `bytes` of journal.
void make_history(const std::string& directory, std::uint64_t bytes) {
  PosixDisk disk;
  auto recovered = need(recover(disk, {.directory = directory}));
  const ClusterId cluster = recovered.hard_state.value().cluster_id;
  auto log = need(HashLog::open(disk, directory, cluster, 0, 0));
  LedgerNode node;
  Execution& execution = node.execution();
  auto writer = need(JournalWriter::open(disk, std::move(recovered), {}, LedgerNode::application().schema()));
  JournalAgent journal(*writer, execution.pool(), Durability::write, execution.snapshots());
  CheckpointAgent checkpoints(execution.board(), log);
  SnapshotAgent snapshots(disk, execution, checkpoints,
                          {.directory = directory,
                           .cluster_id = cluster,
                           .genesis = encode(LedgerNode::genesis()),
                           .shards = LedgerNode::genesis().shards,
                           .retention = {.max_bytes = UINT64_MAX, .max_age_ns = 0}});
  std::uint64_t wish = 0;
  std::uint64_t behind_bytes = UINT64_MAX;
  SystemClock clock;
  while (behind_bytes == UINT64_MAX || writer->counters().bytes < behind_bytes + bytes) {
    const Now now{0, clock.steady_ns()};
    for (int i = 0; i < 2000 && node.send(0, 0); ++i) {
    }
    node.sequencer().do_work(now);
    journal.do_work(now);
    execution.agent(0).do_work(now);
    checkpoints.do_work(now);
    snapshots.do_work(now);
    node.take_answers([](std::uint64_t) {});
    if (wish == 0 && node.answered() > 100'000) wish = snapshots.ask();
    if (wish != 0 && snapshots.answer().done == wish && behind_bytes == UINT64_MAX)
      behind_bytes = writer->counters().bytes;
  }
  while (execution.pool().executed_by_all() < execution.pool().sealed() ||
         execution.pool().written().read() < execution.pool().sealed()) {
    journal.do_work({0, clock.steady_ns()});
    execution.agent(0).do_work({});
    checkpoints.do_work({});
    node.take_answers([](std::uint64_t) {});
  }
  need(writer->close());
}

std::vector<std::string> files_of(const std::string& directory) {
  std::vector<std::string> paths;
  for (const auto& entry : std::filesystem::directory_iterator(directory)) {
    const std::string name = entry.path().filename();
    if (segment_id_of(name) || snapshot_index_of(name)) paths.push_back(entry.path());
  }
  std::ranges::sort(paths);
  return paths;
}

void drop_from_cache(const std::string& directory) {
  for (const std::string& path : files_of(directory)) {
    const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
    ::posix_fadvise(file, 0, 0, POSIX_FADV_DONTNEED);
    ::close(file);
  }
}

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
  auto execution =
      need(start.execution(LedgerNode::application(), LedgerNode::genesis(),
                           {.executors = 1, .slabs = 16, .max_batch_bytes = 256U << 10, .observed = false}));
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

void start_node(const std::string& directory) {
  SystemClock clock;
  NodeConfig config;
  config.data = directory;
  config.listen = "127.0.0.1:0";
  config.admin = "";
  config.executors = 1;
  config.threads = "dedicated";
  const auto node = need(Node::open(LedgerNode::application(), nullptr, config, clock,
                                    [] { return io::make_reactor(io::Backend::automatic); }));
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
