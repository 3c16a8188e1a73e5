// SPDX-License-Identifier: Apache-2.0
#pragma once

/// The commands behind the command line, each as a function of its options: it prints its result on stdout (as one JSON
/// object with --json), errors and progress on stderr, and says how it ended. command_line.cpp parses, these act.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "lockstep/application.hpp"
#include "lockstep/run.hpp"
#include "replay/exit_code.hpp"
#include "runtime/config.hpp"
#include "runtime/load/load.hpp"

namespace lockstep {

/// Prints an error the way all commands do, and gives its exit code.
ExitCode report(const Error& error);

struct ServeOptions {
  Program program;
  NodeConfig config;
  std::string ready_file;  ///< written when the node serves: its addresses as JSON
};
/// Runs until SIGTERM or SIGINT, or a fault.
ExitCode serve_command(const Application& application, const ServeOptions& options);

struct BenchOptions {
  Program program;
  std::string connect;    ///< HOST:PORT of the native protocol
  LoadOptions load;       ///< address excepted
  std::string hgrm_file;  ///< the latency distribution, for HdrHistogram's plotter; empty: none
  bool json = false;
};
/// Drives a node with the program's own load.
ExitCode bench_command(const BenchOptions& options);

struct ReplayOptions {
  enum class Mode { run, until, verify };
  Mode mode = Mode::run;
  std::string data;
  std::uint32_t executors = 1;
  bool own_threads = true;
  std::uint64_t stop_before_seq = 0;
  std::string log_file;  ///< for the lines of Context::log(); empty: they go nowhere
  bool json = false;
};
ExitCode replay_command(const Application& application, const ReplayOptions& options);

struct JournalOptionsCli {
  std::string data;
  std::string range;         ///< of seqs: "A..B" (half-open), "N", "-N..end"; empty: all
  std::string message_type;  ///< only messages whose name contains this
  std::uint64_t limit = 0;   ///< 0: no limit
  std::uint64_t last = 10;   ///< follow: messages before the end to begin with
  bool json = false;
};
ExitCode journal_info_command(const JournalOptionsCli& options);
ExitCode journal_dump_command(const JournalOptionsCli& options);
ExitCode journal_verify_command(const JournalOptionsCli& options);
/// Prints what comes until SIGINT or SIGTERM.
ExitCode journal_follow_command(const JournalOptionsCli& options);

struct JournalRepairOptions {
  std::string data;
  bool accept_tail = false;  ///< cut a tail of which it cannot be told whether it was acknowledged
  bool json = false;
};
ExitCode journal_repair_command(const JournalRepairOptions& options);

struct JournalCutOptions {
  std::string from;
  std::string to;
  std::string range;
  bool with_snapshot = false;
  bool json = false;
};
ExitCode journal_cut_command(const JournalCutOptions& options);

struct HashCompareOptions {
  std::vector<std::string> sides;
  std::optional<std::uint64_t> at_batch;
  int timeout_ms = 2000;
  bool json = false;
};
ExitCode hash_compare_command(const HashCompareOptions& options);
/// What the one side in `options.sides` says of itself.
ExitCode hash_show_command(const HashCompareOptions& options);

struct SnapshotOptions {
  std::string at;  ///< a data directory, or a snapshot's file
  bool json = false;
};
ExitCode snapshot_list_command(const SnapshotOptions& options);
ExitCode snapshot_verify_command(const SnapshotOptions& options);

struct SnapshotTakeOptions {
  std::string admin;  ///< HOST:PORT of a node
  int timeout_ms = 60'000;
  bool json = false;
};
/// Has a node take a snapshot, and waits for it.
ExitCode snapshot_take_command(const SnapshotTakeOptions& options);

struct SnapshotRestoreOptions {
  std::string snapshot;  ///< its file
  std::string data;      ///< directory to make
  std::string journal;   ///< a stopped node's data directory; empty: none
  bool json = false;
};
ExitCode snapshot_restore_command(const SnapshotRestoreOptions& options);

struct SkipOptions {
  std::string data;
  std::uint64_t seq = 0;
  bool json = false;
};
/// Orders that a message be passed over, in the journal of a stopped node.
ExitCode skip_command(const SkipOptions& options);

struct DoctorOptions {
  std::string data;  ///< a directory whose disk to look at; empty: the current one
  bool json = false;
};
ExitCode doctor_command(const DoctorOptions& options);

}  // namespace lockstep
