// SPDX-License-Identifier: Apache-2.0
#include "bench/recovery/history.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>

#include "base/clock.hpp"
#include "bench/snapshot/ledger.hpp"
#include "bench/support/need.hpp"
#include "journal/directory.hpp"
#include "journal/posix_disk.hpp"
#include "runtime/agents/journal_agent.hpp"
#include "runtime/agents/snapshot_agent.hpp"
#include "runtime/node.hpp"

namespace lockstep::bench {

SnapshotWritten make_history(const std::string& directory, std::uint64_t bytes) {
  PosixDisk disk;
  auto recovered = need(recover(disk, {.directory = directory}));
  const ClusterId cluster = recovered.hard_state.value().cluster_id;
  auto log = need(HashLog::open(disk, directory, cluster, 0, 0));
  LedgerNode node;
  Execution& execution = node.execution();
  auto writer = need(JournalWriter::open(disk, std::move(recovered), {}, LedgerNode::application().schema()));
  JournalAgent journal(*writer, execution.pool(), Durability::write, execution.snapshots());
  CheckpointAgent checkpoints(execution.board(), log, true);
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
    const bool snapshot_under_way = wish != 0 && behind_bytes == UINT64_MAX;
    for (int i = 0; i < (snapshot_under_way ? 50 : 2000) && node.send(0, 0); ++i) {
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
  return {snapshots.metrics().bytes_total.value(),
          static_cast<double>(snapshots.metrics().last_duration_ns.value()) / 1e9};
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

}  // namespace lockstep::bench
