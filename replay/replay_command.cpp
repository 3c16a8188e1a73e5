// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/clock.hpp"
#include "journal/hash_log.hpp"
#include "journal/posix_disk.hpp"
#include "journal/skips.hpp"
#include "replay/commands.hpp"
#include "replay/output.hpp"
#include "replay/progress.hpp"
#include "runtime/agents/checkpoint_agent.hpp"
#include "runtime/history_run.hpp"
#include "runtime/history_start.hpp"
#include "runtime/log/actor_log.hpp"
#include "runtime/recorded_roots.hpp"

namespace lockstep {
namespace {

struct Replayed {
  HistoryRun run;
  HistoryPosition from;
  std::uint64_t compared = 0;
  std::uint64_t missing = 0;
  std::uint64_t equal_up_to = 0;  ///< the last batch at which what was recorded was found again
  std::string not_compared = {};  ///< why something could not be compared with what was recorded; empty: all could
  std::optional<Finding> tail;
  bool journal_ends_before = false;  ///< before the batch that was to stop it: all there is was executed
  double seconds = 0;
};

/// What the pool's slabs and the progress bar need to know of a journal.
struct Measure {
  std::uint32_t largest_bytes = 0;  ///< of one batch
  std::uint64_t last_seq = 0;
  bool has_skips = false;
  std::optional<Error> damage_behind;  ///< behind all that is to be executed
};

/// With `stop_before_seq`, damage of what is not executed is only named.
Result<Measure> measure(PosixDisk& disk, const std::string& data, std::uint64_t from, std::uint64_t stop_before_seq) {
  auto reader = JournalReader::open(disk, data, from);
  if (!reader) return std::unexpected(reader.error());
  Measure measured;
  for (;;) {
    const auto batch = reader->next();
    const bool enough = stop_before_seq != 0 && reader->position().seq + 1 >= stop_before_seq;
    if (!batch && enough && batch.error().code == ErrorCode::corrupt) measured.damage_behind = batch.error();
    if (!batch && !measured.damage_behind) return std::unexpected(batch.error());
    if (!batch || !*batch) break;
    measured.has_skips = measured.has_skips || is_skip(**batch);
    measured.largest_bytes = std::max(measured.largest_bytes, (*batch)->header->payload_bytes);
  }
  measured.last_seq = reader->position().seq;
  return measured;
}

/// What the live run recorded, and what of it cannot be read, in words.
struct Recorded {
  HashLogContent content;
  std::string unreadable;
  std::uint64_t durable_index = 0;  ///< the last batch that is recorded as one that was durable
};

/// Without a hash log, or with one that cannot be read at all, there is only nothing to compare with.
Result<Recorded> recorded_by_live_run(PosixDisk& disk, const std::string& data) {
  const auto state = look_at_hard_state(disk, data);
  if (!state) return std::unexpected(state.error());
  const auto there = has_hash_log(disk, data);
  if (!there) return std::unexpected(there.error());
  if (!*there) return Recorded{};
  const auto root = last_durable_root(disk, data, state->cluster_id, state->replica_id);
  if (!root) return std::unexpected(root.error());
  const std::uint64_t durable_index = *root ? (*root)->index : 0;
  auto content = read_hash_log(disk, data);
  const bool tells_nothing = !content && (content.error().code == ErrorCode::corrupt ||  //
                                          content.error().code == ErrorCode::incomplete);
  if (tells_nothing)
    return Recorded{.content = {}, .unreadable = content.error().message, .durable_index = durable_index};
  if (!content) return std::unexpected(content.error());
  const std::string path = fmt::format("{}/{}", data, hash_log_name);
  if (auto own = check_owner(content->header, path, state->cluster_id, state->replica_id); !own)
    return std::unexpected(own.error());
  std::string unreadable = describe_torn(*content, data);
  return Recorded{std::move(*content), std::move(unreadable), durable_index};
}

/// A history that ends before what was recorded as durable has lost it.
Result<void> check_end(const Recorded& live, const std::string& data, std::uint64_t last_batch) {
  if (live.durable_index <= last_batch) return {};
  return fail(ErrorCode::corrupt,
              fmt::format("{}: the journal ends at batch {}, and {} has a root of batch {}, which was durable when it "
                          "was recorded: acknowledged batches are lost; restore the directory from a backup or from "
                          "another replica",
                          data, last_batch, hash_log_name, live.durable_index));
}

/// Why a comparison that found no difference is still not one of all that was replayed; empty: it is.
std::string why_incomplete(const Recorded& live, const RecordedRoots& recorded, std::uint64_t last_batch,
                           bool to_the_end) {
  const std::vector<HashEntry>& entries = live.content.entries;
  if (!live.unreadable.empty() && recorded.last_equal_batch() < last_batch) return live.unreadable;
  if (to_the_end && !entries.empty() && entries.back().index > last_batch)
    return fmt::format("roots are recorded up to batch {}, and the journal ends at batch {}", entries.back().index,
                       last_batch);
  return recorded.compared() == 0 ? "there is nothing recorded to compare with" : "";
}

/// Null when none is wanted.
Result<std::unique_ptr<ActorLog>> open_actor_log(const ReplayOptions& options, Execution& execution) {
  if (options.log_file.empty()) return nullptr;
  auto opened = ActorLog::open(options.log_file, options.executors, RecordLogOptions::WhenFull::block);
  if (!opened) return std::unexpected(opened.error());
  for (std::uint32_t i = 0; i < options.executors; ++i) execution.log_to(i, &(*opened)->sink(i));
  return opened;
}

Result<Replayed> replay(const Application& application, const ReplayOptions& options) {
  PosixDisk disk;
  auto start = find_history_start(disk, options.data, StartFrom::earliest);
  if (!start) return std::unexpected(start.error());
  const std::optional<Genesis>& genesis = start->genesis;
  if (!genesis) return fail(ErrorCode::incomplete, fmt::format("{}: the journal is empty", options.data));
  if (genesis->application != application.digest())
    return fail(ErrorCode::incompatible,
                fmt::format("{}: written by other actors than this program has (application {:016x}, here {:016x}); "
                            "replay it with the program that wrote it",
                            options.data, genesis->application, application.digest()));
  const auto measured = measure(disk, options.data, start->position.index + 1, options.stop_before_seq);
  if (!measured) return std::unexpected(measured.error());
  if (measured->damage_behind)
    fmt::print(stderr, "note: what is executed is sound, but behind it: {}\n", measured->damage_behind->message);
  const auto live = recorded_by_live_run(disk, options.data);
  if (!live) return std::unexpected(live.error());
  RecordedRoots recorded(live->content);
  if (options.stop_before_seq != 0 && options.stop_before_seq <= start->position.seq)
    return fail(ErrorCode::incomplete,
                fmt::format("{}: the history begins behind seq {}, with the snapshot of batch {}", options.data,
                            start->position.seq, start->position.index));
  auto reader = JournalReader::open(disk, options.data, start->position.index + 1);
  if (!reader) return std::unexpected(reader.error());

  auto skips = read_skips(disk, options.data, measured->has_skips);
  if (!skips) return std::unexpected(skips.error());
  auto execution = start->execution(
      application, *genesis,
      {.executors = options.executors,
       .slabs = 16,
       .max_batch_bytes = std::max<std::uint32_t>(4096, (measured->largest_bytes + 4095) / 4096 * 4096),
       .skips = std::move(*skips)});
  if (!execution) return std::unexpected(execution.error());
  auto actor_log = open_actor_log(options, **execution);
  if (!actor_log) return std::unexpected(actor_log.error());
  if (start->snapshot)
    if (auto equal = recorded.begin_at(checkpoint_of(start->snapshot->header())); !equal)
      return std::unexpected(equal.error());
  Progress progress("replaying", "messages",
                    options.stop_before_seq != 0 ? options.stop_before_seq - 1 : measured->last_seq);
  HistoryRunOptions run_options;
  run_options.own_threads = options.own_threads;
  run_options.from = start->position;
  run_options.stop_before_seq = options.stop_before_seq;
  run_options.on_checkpoint = [&](const Checkpoint& checkpoint) { return recorded.compare(checkpoint); };
  run_options.on_progress = [&](std::uint64_t seq) {
    progress.update(seq);
    return true;
  };
  SystemClock clock;
  const std::int64_t started_ns = clock.steady_ns();
  auto run = run_history(*reader, **execution, clock, run_options);
  progress.finish();
  if (*actor_log != nullptr)
    if (auto closed = (*actor_log)->close(); !closed) return std::unexpected(closed.error());
  if (!run) return std::unexpected(run.error());
  Replayed replayed{
      .run = *run,
      .from = start->position,
      .tail = reader->tail(),
      .journal_ends_before = options.stop_before_seq != 0 && options.stop_before_seq - 1 > measured->last_seq,
      .seconds = static_cast<double>(clock.steady_ns() - started_ns) / 1e9};
  if (run->last.index != 0)
    if (auto equal = recorded.compare_end(run->final_state); !equal) return std::unexpected(equal.error());
  replayed.compared = recorded.compared();
  replayed.missing = recorded.not_recorded();
  replayed.equal_up_to = recorded.last_equal_batch();
  // Stopped at a wish, an execution ends where there is more.
  const bool to_the_end = options.mode == ReplayOptions::Mode::verify && options.stop_before_seq == 0;
  if (to_the_end)
    if (auto whole = check_end(*live, options.data, run->last.index); !whole) return std::unexpected(whole.error());
  replayed.not_compared = why_incomplete(*live, recorded, run->last.index, to_the_end);
  return replayed;
}

void print_text(const ReplayOptions& options, const Replayed& replayed) {
  const HistoryRun& run = replayed.run;
  if (replayed.from.index != 0)
    fmt::print("from the snapshot of batch {}: the journal does not reach back to its first batch\n",
               with_separators(replayed.from.index));
  fmt::print("replayed {} batches, {} messages on {} executors{} in {:.2f} s ({:.2f} M/s), {} traps\n",
             with_separators(run.last.index - replayed.from.index), with_separators(run.end.seq - replayed.from.seq),
             options.executors, options.own_threads ? "" : " (one thread)", replayed.seconds,
             static_cast<double>(run.handlers) / std::max(replayed.seconds, 1e-9) / 1e6, run.traps);
  fmt::print("root {}  effects {}  chain {}  at batch {}\n", run.final_state.root.short_hex(),
             run.final_state.effects.short_hex(), run.final_state.chain.short_hex(), run.final_state.batch);
  if (replayed.journal_ends_before)
    fmt::print("executed to the end of the journal, which is at seq {}, before seq {}\n", with_separators(run.end.seq),
               with_separators(options.stop_before_seq));
  if (replayed.tail) fmt::print("note: {}\n", describe(*replayed.tail));
  if (options.mode != ReplayOptions::Mode::verify) return;
  fmt::print("{} of {} checkpoints were recorded by the live run, and are equal in roots, effects and chain\n",
             replayed.compared, replayed.compared + replayed.missing);
  if (!replayed.not_compared.empty())
    fmt::print("INCOMPLETE: equal up to batch {}, not compared behind it: {}\n", with_separators(replayed.equal_up_to),
               replayed.not_compared);
}

void print_json(const ReplayOptions& options, const Replayed& replayed) {
  const HistoryRun& run = replayed.run;
  nlohmann::json out{{"schema", "lockstep.replay/1"},
                     {"data", options.data},
                     {"executors", options.executors},
                     {"from_batch", replayed.from.index},
                     {"batches", run.last.index},
                     {"seq", run.end.seq},
                     {"root", run.final_state.root.hex()},
                     {"effects", run.final_state.effects.hex()},
                     {"chain", run.final_state.chain.hex()},
                     {"checkpoints", run.checkpoints},
                     {"compared", replayed.compared},
                     {"not_recorded", replayed.missing},
                     {"equal_up_to_batch", replayed.equal_up_to},
                     {"handlers", run.handlers},
                     {"traps", run.traps},
                     {"seconds", replayed.seconds}};
  if (options.mode == ReplayOptions::Mode::until) out["journal_ends_before"] = replayed.journal_ends_before;
  if (options.mode == ReplayOptions::Mode::verify) {
    out["verdict"] = replayed.not_compared.empty() ? "equal" : "incomplete";
    if (!replayed.not_compared.empty()) out["reason"] = replayed.not_compared;
  }
  print_json_line(out);
}

}  // namespace

ExitCode replay_command(const Application& application, const ReplayOptions& options) {
  const auto replayed = replay(application, options);
  if (!replayed) {
    if (options.json)
      print_json_line({{"schema", "lockstep.replay/1"},
                       {"data", options.data},
                       {"verdict", replayed.error().code == ErrorCode::diverged ? "diverged" : "failed"},
                       {"error", replayed.error().message}});
    return report(replayed.error());
  }
  if (options.json) {
    print_json(options, *replayed);
  } else {
    print_text(options, *replayed);
  }
  const bool incomplete = options.mode == ReplayOptions::Mode::verify && !replayed->not_compared.empty();
  return incomplete ? ExitCode::incomplete : ExitCode::equal;
}

}  // namespace lockstep
