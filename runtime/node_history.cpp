// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <random>

#include "base/log.hpp"
#include "journal/hard_state.hpp"
#include "journal/hash_log.hpp"
#include "journal/posix_disk.hpp"
#include "journal/skips.hpp"
#include "runtime/node_parts.hpp"
#include "runtime/recorded_roots.hpp"

namespace lockstep {
namespace {

/// A process has 128 TiB of addresses on x86-64; the rest is for mail, tables and everybody else. Up to 1024 shards
/// have the 64 GiB each that genesis gives them, more have to share.
constexpr std::uint64_t all_shards_bytes = 64ULL << 40U;

Genesis new_genesis(const Application& application, const GenesisOptions& options) {
  Genesis genesis;
  genesis.application = application.digest();
  genesis.shards = options.shards;
  genesis.shard_memory_bytes = std::min(genesis.shard_memory_bytes, all_shards_bytes / options.shards >> 20U << 20U);
  genesis.max_rounds = options.max_rounds;
  genesis.checkpoint_interval = options.checkpoint_interval;
  genesis.cluster_seed = options.seed;
  if (options.seed == 0) {
    std::random_device device;  // once, before the first record; from there on it is history
    genesis.cluster_seed = std::uint64_t{device()} << 32 | device();
  }
  return genesis;
}

/// A default may stand for what was not asked for, and a seed of 0 asks for any: of neither is anything said.
void warn_of_other_genesis(const GenesisOptions& asked, const Genesis& begun, const std::string& data) {
  const GenesisOptions defaults;
  std::string differing;
  const auto hold = [&](const char* key, std::uint64_t wanted, std::uint64_t usual, std::uint64_t is) {
    if (wanted == is || wanted == usual) return;
    differing += fmt::format("{}{} = {} (configured: {})", differing.empty() ? "" : ", ", key, is, wanted);
  };
  hold("shards", asked.shards, defaults.shards, begun.shards);
  hold("max_rounds", asked.max_rounds, defaults.max_rounds, begun.max_rounds);
  hold("checkpoint_interval", asked.checkpoint_interval, defaults.checkpoint_interval, begun.checkpoint_interval);
  hold("seed", asked.seed, defaults.seed, begun.cluster_seed);
  if (!differing.empty())
    log(LogLevel::warning, "node", "{}: its journal was begun with another [genesis], which stays: {}", data,
        differing);
}

}  // namespace

/// Whatever refuses a start and can be seen beforehand: it then leaves the directory as it was.
Result<void> Node::Parts::look_before_settling() {
  Disk& disk = reactors[0]->disk();
  auto found = find_history_start(disk, config.data, StartFrom::newest_snapshot);
  if (!found) return std::unexpected(found.error());
  history_start.emplace(std::move(*found));
  genesis = history_start->genesis.value_or(new_genesis(application, config.genesis));
  if (genesis.application != application.digest())
    return fail(ErrorCode::incompatible,
                fmt::format("{}: written by other actors than this program has (application {:016x}, here {:016x}); "
                            "serve it with the program that wrote it",
                            config.data, genesis.application, application.digest()));
  const auto state = look_at_hard_state(disk, config.data);
  if (!state) return std::unexpected(state.error());
  if (auto sound = check_hash_log(disk, config.data, state->cluster_id, state->replica_id); !sound) return sound;
  if (history_start->genesis) warn_of_other_genesis(config.genesis, genesis, config.data);
  return validate(genesis);
}

/// Brings the executors to where the journal ends, and holds what they come to against what was recorded.
Result<void> Node::Parts::run_journal(const HistoryPosition& end) {
  Disk& disk = reactors[0]->disk();
  if (auto removed = remove_half_made_snapshots(disk, config.data); !removed) return removed;
  auto options = execution_options(end);
  if (!options) return std::unexpected(options.error());
  auto made = history_start->execution(application, genesis, std::move(*options));
  if (!made) return std::unexpected(made.error());
  execution = std::move(*made);
  if (auto opened = open_hash_log(end.index); !opened) return opened;
  auto run = run_from(*history_start, end.seq);
  if (!run) return std::unexpected(run.error());
  history = *run;
  const std::uint64_t newest_snapshot = history_start->position.index;
  history_start.reset();
  if (halted_before) return {};
  breadcrumbs->forget();
  make_snapshots(newest_snapshot);
  return open_actor_log();
}

/// Entries behind the journal's end do not say that they were durable: recovery would have refused.
Result<void> Node::Parts::open_hash_log(std::uint64_t last_index) {
  auto opened = HashLog::open(reactors[0]->disk(), config.data, identity.cluster_id, identity.replica_id, last_index);
  if (!opened) return std::unexpected(opened.error());
  hash_log = std::make_unique<HashLog>(std::move(*opened));
  const std::string path = config.data + "/" + hash_log_name;
  if (hash_log->remade())
    log(LogLevel::warning, "node",
        "{}: it held nothing, not even a header, as a crash while it was made leaves it, and is made anew; what it may "
        "have recorded is derived again from the journal",
        path);
  if (hash_log->torn_bytes() != 0)
    log(LogLevel::warning, "node",
        "{}: its last {} bytes were torn or damaged, and are cut; what they recorded is lost", path,
        hash_log->torn_bytes());
  if (hash_log->cut_index() != 0)
    log(LogLevel::warning, "node",
        "{}: it had roots up to batch {}, recorded without waiting for the disk, and the journal ends at batch {}; "
        "they are cut",
        path, hash_log->cut_index(), last_index);
  checkpoints =
      std::make_unique<CheckpointAgent>(execution->board(), *hash_log, config.durability == Durability::fsync);
  return {};
}

/// For what is executed from here on: lines of the history that was just run again were written when it was new.
Result<void> Node::Parts::open_actor_log() {
  if (config.actor_log.empty()) return {};
  auto opened = ActorLog::open(config.actor_log, layout.executors, RecordLogOptions::WhenFull::drop);
  if (!opened) return std::unexpected(opened.error());
  actor_log = std::move(*opened);
  for (std::uint32_t i = 0; i < layout.executors; ++i) execution->log_to(i, &actor_log->sink(i));
  return {};
}

Result<HistoryRun> Node::Parts::run_from(const HistoryStart& start, std::uint64_t last_seq) {
  Disk& disk = reactors[0]->disk();
  auto content = read_hash_log(disk, config.data);
  if (!content) return std::unexpected(content.error());
  RecordedRoots roots(std::move(*content));
  if (start.snapshot) {
    const Checkpoint restored = checkpoint_of(start.snapshot->header());
    if (auto equal = roots.begin_at(restored); !equal) return std::unexpected(equal.error());
    checkpoints->remember(restored);
    if (auto added = hash_log->append(hash_entry(restored, HashKind::resumed, true)); !added)
      return std::unexpected(added.error());
  }
  auto reader = JournalReader::open(disk, config.data, start.position.index + 1);
  if (!reader) return std::unexpected(reader.error());
  HistoryRunOptions options;
  options.own_threads = layout.own_threads;
  options.from = start.position;
  options.perimeters = config.perimeters;
  options.stop_before_seq = halted_before ? halted_before->seq : 0;
  options.on_checkpoint = [&](const Checkpoint& checkpoint) -> Result<void> {
    if (auto equal = roots.compare(checkpoint); !equal) return equal;
    checkpoints->remember(checkpoint);
    // Recovery made durable what it found.
    return hash_log->append(hash_entry(checkpoint, HashKind::checkpoint, true));
  };
  if (progress) options.on_progress = [&](std::uint64_t seq) { return progress(seq, last_seq); };
  auto run = run_history(*reader, *execution, clock, options);
  if (run && run->end.index != 0 && !halted_before)
    if (auto equal = roots.compare_end(run->final_state); !equal) return std::unexpected(equal.error());
  return run;
}

void Node::Parts::make_snapshots(std::uint64_t newest_index) {
  constexpr std::int64_t hour_ns = 3'600'000'000'000;
  SnapshotAgent::Options options;
  options.directory = config.data;
  options.cluster_id = identity.cluster_id;
  options.genesis = encode(genesis);
  options.shards = genesis.shards;
  options.every_bytes = config.snapshot_every_bytes;
  options.journaled_bytes = history.journal_bytes;
  options.newest_index = newest_index;
  options.keep = config.snapshots_kept;
  options.retention = {config.journal_kept_bytes, static_cast<std::int64_t>(config.journal_kept_hours) * hour_ns};
  // A thread of its own blocks in the kernel while others work; the one thread has one disk.
  if (layout.own_threads) snapshot_disk = std::make_unique<PosixDisk>();
  Disk& disk = layout.own_threads ? *snapshot_disk : reactors[0]->disk();
  snapshots = std::make_unique<SnapshotAgent>(disk, *execution, *checkpoints, std::move(options));
}

/// Looks at what the last process died of, and at what an operator wants passed over.
Result<Execution::Options> Node::Parts::execution_options(const HistoryPosition& end) {
  Disk& disk = reactors[0]->disk();
  auto opened = Breadcrumbs::open(disk, config.data);
  if (!opened) return std::unexpected(opened.error());
  breadcrumbs.emplace(std::move(*opened));
  auto skips = read_skips(disk, config.data);
  if (!skips) return std::unexpected(skips.error());

  const auto poison = breadcrumbs->poison(*skips);
  if (poison && poison->seq <= end.seq) {
    halted_before = poison;
    log(LogLevel::error, "node",
        "{}: this program has died {} times executing seq {}: halting before the batch that holds it. Queries are "
        "answered on the state before it, requests are refused. Serve the directory with a mended program, or stop "
        "this one and pass over the message: lockstep skip {} --data {}",
        config.data, poison->count, poison->seq, poison->seq, config.data);
  }
  if (config.handler_timeout_ms != 0)
    watchdog = std::make_unique<Watchdog>(std::span(breadcrumbs->slots(), layout.executors), config.handler_timeout_ms);
  return Execution::Options{.executors = layout.executors,
                            .perimeters = config.perimeters,
                            .slabs = config.batch_slabs,
                            .max_batch_bytes = config.max_batch_bytes,
                            .skips = std::move(*skips),
                            .breadcrumbs = breadcrumbs->slots(),
                            .sweep = {.quota_bytes = config.snapshot_quota_bytes / layout.executors}};
}

}  // namespace lockstep
