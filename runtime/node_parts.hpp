// SPDX-License-Identifier: Apache-2.0
#pragma once

/// What a Node is made of. Private to the files that make up Node: node.cpp builds it, runs it and takes it apart;
/// node_history.cpp brings it to where its journal ends; node_status.cpp tells the world how it is.

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "journal/hash_log.hpp"
#include "journal/writer.hpp"
#include "runtime/admin_server.hpp"
#include "runtime/agents/checkpoint_agent.hpp"
#include "runtime/agents/journal_agent.hpp"
#include "runtime/agents/perimeter.hpp"
#include "runtime/agents/sequencer.hpp"
#include "runtime/agents/snapshot_agent.hpp"
#include "runtime/breadcrumbs.hpp"
#include "runtime/execution.hpp"
#include "runtime/history_run.hpp"
#include "runtime/history_start.hpp"
#include "runtime/io/reactor.hpp"
#include "runtime/log/actor_log.hpp"
#include "runtime/metrics.hpp"
#include "runtime/node.hpp"
#include "runtime/runner.hpp"
#include "runtime/watchdog.hpp"

namespace lockstep {

/// How the agents are spread over threads.
struct NodeLayout {
  std::uint32_t executors = 1;
  bool own_threads = true;  ///< a thread an executor, beside the one of perimeter, sequencer and journal
  std::int64_t spin_ns = 0;
};

struct Node::Parts {
  const Application& application;
  const resp::Application* resp_application;
  NodeConfig config;
  Clock& clock;
  StartProgress progress;  // of open(); may be empty
  NodeLayout layout;

  std::vector<std::unique_ptr<io::Reactor>> reactors;  // one a perimeter; [0] also has the journal's disk
  std::unique_ptr<JournalWriter> writer;               // null in a halted node
  std::optional<Recovered> untouched;                  // of a halted node: the hold on its directory
  std::optional<Breadcrumbs> breadcrumbs;
  std::optional<Breadcrumbs::Deaths> halted_before;
  std::unique_ptr<Watchdog> watchdog;
  std::unique_ptr<HashLog> hash_log;
  HardState identity;
  Genesis genesis;
  std::optional<HistoryStart> history_start;  // from the look at the directory until its history has been run
  HistoryRun history;
  std::unique_ptr<ActorLog> actor_log;  // null: cx.log() goes nowhere
  std::unique_ptr<Execution> execution;
  std::unique_ptr<Sequencer> sequencer;
  std::unique_ptr<JournalAgent> journal;  // null in a halted node
  std::unique_ptr<CheckpointAgent> checkpoints;
  std::unique_ptr<Disk> snapshot_disk;             // of the snapshots' thread, if they have one
  std::unique_ptr<SnapshotAgent> snapshots;        // null in a halted node
  std::vector<std::unique_ptr<ByteRing>> inbound;  // records of perimeters beside the first
  std::vector<std::unique_ptr<Perimeter>> perimeters;
  std::unique_ptr<AdminServer> admin;
  io::Endpoint native;
  io::Endpoint resp;

  std::vector<std::unique_ptr<Runner>> runners;  // [0] is the perimeter's
  bool started = false;
  std::optional<Error> close_error;  // set by the perimeter's thread as it ends, read after join

  Parts(const Application& actors, const resp::Application* resp_commands, const NodeConfig& options, Clock& time)
      : application(actors), resp_application(resp_commands), config(options), clock(time) {}

  Result<void> open();
  Result<void> open_on(Recovered& recovered);
  Result<Recovered> recover_journal();
  Result<void> look_before_settling();
  Result<void> run_journal(const HistoryPosition& end);
  Result<void> open_hash_log(std::uint64_t last_index);
  Result<HistoryRun> run_from(const HistoryStart& start, std::uint64_t last_seq);
  Result<void> open_actor_log();
  void make_snapshots(std::uint64_t newest_index);
  Result<Execution::Options> execution_options(const HistoryPosition& end);
  Result<void> open_journal(Recovered&& recovered);
  Result<void> open_perimeters();
  void make_perimeter(std::uint32_t index);
  Result<void> listen(Perimeter& perimeter, const std::string& wanted, CodecKind codec, io::Endpoint& bound);
  Result<void> open_admin();
  void make_runners();
  void make_snapshot_runner();
  void close_journal();
  Result<void> close_hash_log();
  void wait_until_drained(std::int64_t deadline_ns);
  void tell_what_is_left() const;

  [[nodiscard]] bool failed() const { return journal != nullptr && journal->failed(); }
  [[nodiscard]] std::vector<Sample> samples() const;
  [[nodiscard]] std::string status() const;
  void add_reactor_samples(std::vector<Sample>& all) const;
  void add_snapshot_samples(std::vector<Sample>& all) const;
  void add_actor_log_samples(std::vector<Sample>& all) const;
  [[nodiscard]] std::string snapshot_page(bool ask) const;
};

}  // namespace lockstep
