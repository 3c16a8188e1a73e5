// SPDX-License-Identifier: Apache-2.0
#include "runtime/history_run.hpp"

#include <fmt/format.h>

#include <cstring>
#include <memory>
#include <thread>
#include <vector>

#include "runtime/runner.hpp"

namespace lockstep {
namespace {

/// Copies batches from the journal into the pool, as far as there is room.
class Feed {
 public:
  Feed(JournalReader& reader, BatchPool& pool, const HistoryRunOptions& options)
      : reader_(reader), pool_(pool), stop_before_seq_(options.stop_before_seq), last_(batch_at(options.from)) {}

  Result<int> turn() {
    int fed = 0;
    while (!at_end_ && fed < batches_per_turn && pool_.can_open(last_.index + 1)) {
      const auto batch = reader_.next();
      if (!batch && ends_before_damage(batch.error())) {
        at_end_ = true;
        break;
      }
      if (!batch) return std::unexpected(batch.error());
      if (!*batch || (stop_before_seq_ != 0 && holds_or_follows((*batch)->header, stop_before_seq_))) {
        at_end_ = true;
        break;
      }
      if (auto taken = take(**batch); !taken) return std::unexpected(taken.error());
      ++fed;
    }
    return fed;
  }

  [[nodiscard]] bool at_end() const { return at_end_; }
  [[nodiscard]] const BatchHeader& last() const { return last_; }
  [[nodiscard]] std::uint64_t journal_bytes() const { return journal_bytes_; }

 private:
  static constexpr int batches_per_turn = 8;

  static bool holds_or_follows(const BatchHeader* header, std::uint64_t seq) {
    return header->first_seq + header->record_count > seq;
  }

  /// All that was wanted has been fed, and only then comes damage.
  [[nodiscard]] bool ends_before_damage(const Error& error) const {
    return stop_before_seq_ != 0 && error.code == ErrorCode::corrupt &&
           last_.first_seq + last_.record_count >= stop_before_seq_;
  }

  Result<void> take(const BatchView& batch) {
    if (batch.payload.size() > pool_.max_batch_bytes())
      return fail(ErrorCode::usage, fmt::format("batch {} has {} bytes, more than a slab of {}; raise max_bytes in "
                                                "[batches]",
                                                batch.header->index, batch.payload.size(), pool_.max_batch_bytes()));
    last_ = *batch.header;
    journal_bytes_ += block_total_bytes(last_.payload_bytes);
    std::memcpy(pool_.payload(last_.index), batch.payload.data(), batch.payload.size());
    pool_.header(last_.index) = last_;
    pool_.publish_sealed(last_.index);
    pool_.written().publish(last_.index);
    pool_.committed().publish(last_.index);
    return {};
  }

  JournalReader& reader_;
  BatchPool& pool_;
  std::uint64_t stop_before_seq_;
  BatchHeader last_;
  std::uint64_t journal_bytes_ = 0;
  bool at_end_ = false;
};

/// The executors, on threads of their own or turned by the caller.
class Crew {
 public:
  Crew(Execution& execution, Clock& clock, bool own_threads) : execution_(execution) {
    if (!own_threads) return;
    for (std::uint32_t i = 0; i < execution.executors(); ++i)
      runners_.push_back(
          std::make_unique<Runner>(RunnerOptions{.name = fmt::format("executor-{}", i), .spin_ns = 20'000}, clock,
                                   nullptr, std::vector<Agent*>{&execution.agent(i)}));
    Runner::introduce(runners_);
    for (auto& runner : runners_) runner->start();
  }

  ~Crew() { stop(); }
  Crew(const Crew&) = delete;
  Crew& operator=(const Crew&) = delete;

  /// Lets the executors get on.
  void turn(bool fed) {
    if (runners_.empty())
      for (std::uint32_t i = 0; i < execution_.executors(); ++i) execution_.agent(i).do_work({});
    for (auto& runner : runners_) runner->notify();
    if (!runners_.empty() && !fed) std::this_thread::yield();
  }

  /// All before any is destroyed: they notify each other.
  void stop() {
    for (auto& runner : runners_) runner->request_stop();
    for (auto& runner : runners_) runner->join();
  }

 private:
  Execution& execution_;
  std::vector<std::unique_ptr<Runner>> runners_;
};

Result<void> take_checkpoints(Execution& execution, const HistoryRunOptions& options, HistoryRun& run) {
  while (const auto checkpoint = execution.board().poll()) {
    ++run.checkpoints;
    if (!options.on_checkpoint) continue;
    if (auto taken = options.on_checkpoint(*checkpoint); !taken) return taken;
  }
  return {};
}

}  // namespace

Result<std::optional<Genesis>> read_genesis(Disk& disk, const std::string& directory) {
  auto reader = JournalReader::open(disk, directory);
  if (!reader) return std::unexpected(reader.error());
  const auto batch = reader->next();
  if (!batch) return std::unexpected(batch.error());
  if (!*batch) return std::nullopt;
  const auto record = RecordCursor((*batch)->payload).next();
  if (!record || record->header->kind != RecordKind::genesis)
    return fail(ErrorCode::corrupt, fmt::format("{}: the history does not begin with a genesis record", directory));
  auto genesis = decode_genesis(record->payload);
  if (!genesis) return std::unexpected(genesis.error());
  return *genesis;
}

Result<HistoryRun> run_history(JournalReader& reader, Execution& execution, Clock& clock,
                               const HistoryRunOptions& options) {
  HistoryRun run;
  Feed feed(reader, execution.pool(), options);
  Crew crew(execution, clock, options.own_threads);
  while (!feed.at_end() || execution.pool().executed_by_all() < feed.last().index) {
    const auto fed = feed.turn();
    if (!fed) return std::unexpected(fed.error());
    crew.turn(*fed > 0);
    for (std::uint32_t p = 0; p < options.perimeters; ++p) execution.discard_replies(p);
    if (auto taken = take_checkpoints(execution, options, run); !taken) return std::unexpected(taken.error());
    const std::uint64_t next_seq = feed.last().first_seq + feed.last().record_count;
    if (options.on_progress && !options.on_progress(next_seq))
      return fail(ErrorCode::incomplete,
                  fmt::format("told to stop before seq {} of the history was executed", next_seq));
  }
  crew.stop();
  if (auto taken = take_checkpoints(execution, options, run); !taken) return std::unexpected(taken.error());
  run.last = feed.last();
  run.journal_bytes = feed.journal_bytes();
  if (run.last.index != 0) {
    run.end = position_after(run.last);
    run.final_state = execution.end(run.last);
  }
  for (std::uint32_t i = 0; i < execution.executors(); ++i) {
    run.handlers += execution.executor(i).handlers_run();
    run.traps += execution.executor(i).traps();
  }
  return run;
}

}  // namespace lockstep
