// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>

#include "journal/inspect.hpp"
#include "journal/posix_disk.hpp"
#include "journal/reader.hpp"
#include "replay/commands.hpp"
#include "replay/journal_range.hpp"
#include "replay/output.hpp"
#include "replay/record_printer.hpp"
#include "replay/stop_signals.hpp"

namespace lockstep {
namespace {

/// Prints the records of a journal that match, up to a limit.
class RecordLines {
 public:
  RecordLines(const JournalOptionsCli& options, const SeqRange& range)
      : printer_(options.message_type, options.json), range_(range), limit_(options.limit) {}

  /// False when enough has been printed.
  bool print(const JournalReader& reader, const BatchView& batch) {
    printer_.use_schema(reader, batch.header->schema_id);
    if (batch.header->record_count != 0 && first_seq_ == 0) first_seq_ = batch.header->first_seq;
    last_seq_ = batch.header->first_seq + batch.header->record_count - 1;
    in_range_ = in_range_ || (batch.header->record_count != 0 && range_.first <= last_seq_ &&
                              range_.last >= batch.header->first_seq);
    RecordCursor records(batch.payload);
    while (const auto record = records.next()) {
      if (!range_.contains(record->header->seq) || !printer_.matches(*record)) continue;
      if (!printer_.print(*record, batch.header->index)) damaged_ = true;
      if (++printed_ == limit_) return false;
    }
    return range_.last > last_seq_;
  }

  /// Refuses a type and a range that the journal does not have, once it was read as far as it was wanted.
  [[nodiscard]] Result<void> check_asked(const JournalOptionsCli& options) const {
    if (first_seq_ == 0) return {};
    if (const auto type = printer_.check_type(); !type) return type;
    if (in_range_) return {};
    return fail(ErrorCode::usage,
                fmt::format("nothing in {} is in the range {}: it has seqs from {} {}", options.data, options.range,
                            first_seq_, range_.last < first_seq_ ? "on" : fmt::format("to {}", last_seq_)));
  }
  [[nodiscard]] Result<void> check_type() const { return printer_.check_type(); }
  [[nodiscard]] bool damaged() const { return damaged_; }

 private:
  RecordPrinter printer_;
  SeqRange range_;
  std::uint64_t limit_;
  std::uint64_t printed_ = 0;
  std::uint64_t first_seq_ = 0;  ///< of what was read; 0: no record yet
  std::uint64_t last_seq_ = 0;
  bool in_range_ = false;
  bool damaged_ = false;  ///< a record was not what its schema says
};

/// A journal's batches past its damage, which is named on stderr: the file and block where reading stopped, and, once
/// it is known, which seqs are lost.
class PastDamage {
 public:
  explicit PastDamage(JournalReader& reader) : reader_(reader) {}

  /// The next batch that can be read; nothing at the end.
  Result<std::optional<BatchView>> next() {
    for (;;) {
      auto batch = reader_.next();
      if (batch) {
        if (lost_from_ != 0) say_what_is_lost(*batch ? (*batch)->header : nullptr);
        return batch;
      }
      if (batch.error().code != ErrorCode::corrupt) return batch;
      damaged_ = true;
      if (lost_from_ == 0) lost_from_ = reader_.position().seq + 1;
      fmt::print(stderr, "lockstep: {}\n", batch.error().message);
      const auto passed = reader_.pass_damage();
      if (!passed) return std::unexpected(passed.error());
      if (*passed) continue;
      say_what_is_lost(nullptr);
      return std::nullopt;
    }
  }
  [[nodiscard]] bool damaged() const { return damaged_; }

 private:
  void say_what_is_lost(const BatchHeader* behind) {
    if (behind == nullptr) {
      fmt::print(stderr, "lockstep: what was from seq {} on cannot be read\n", lost_from_);
    } else if (behind->first_seq > lost_from_) {
      fmt::print(stderr, "lockstep: seqs {}..{} cannot be read; going on at seq {}\n", lost_from_,
                 behind->first_seq - 1, behind->first_seq);
    }
    lost_from_ = 0;
  }

  JournalReader& reader_;
  std::uint64_t lost_from_ = 0;  ///< 0: nothing since the last batch
  bool damaged_ = false;
};

/// The last seq that can be read, behind damage too; what a dump says of the damage is not said twice.
Result<std::uint64_t> last_readable_seq(Disk& disk, const std::string& data) {
  auto reader = JournalReader::open(disk, data, 0);
  if (!reader) return std::unexpected(reader.error());
  std::uint64_t last = 0;
  for (;;) {
    const auto batch = reader->next();
    if (batch && !*batch) return last;
    if (batch) last = (*batch)->header->first_seq + (*batch)->header->record_count - 1;
    if (batch) continue;
    if (batch.error().code != ErrorCode::corrupt) return std::unexpected(batch.error());
    const auto passed = reader->pass_damage();
    if (!passed) return std::unexpected(passed.error());
    if (!*passed) return last;
  }
}

Result<ExitCode> dump(const JournalOptionsCli& options) {
  constexpr std::uint64_t far_away = UINT64_MAX / 2;  // where `end` is, when nothing counts from it
  PosixDisk disk;
  const bool counts_from_end = options.range.find('-') != std::string::npos;
  const auto last_seq = counts_from_end ? last_readable_seq(disk, options.data) : far_away;
  if (!last_seq) return std::unexpected(last_seq.error());
  const auto range = parse_seq_range(options.range, *last_seq);
  if (!range) return std::unexpected(range.error());
  auto reader = JournalReader::open(disk, options.data, 0);
  if (!reader) return std::unexpected(reader.error());
  RecordLines lines(options, *range);
  PastDamage batches(*reader);
  for (;;) {
    const auto batch = batches.next();
    if (!batch) return std::unexpected(batch.error());
    if (!*batch || !lines.print(*reader, **batch)) break;
  }
  if (reader->tail()) fmt::print(stderr, "note: {}\n", describe(*reader->tail()));
  if (batches.damaged() || lines.damaged()) return ExitCode::damaged;
  if (const auto asked = lines.check_asked(options); !asked) return std::unexpected(asked.error());
  return ExitCode::equal;
}

Result<ExitCode> follow(const JournalOptionsCli& options) {
  constexpr long look_every_ms = 20;
  constexpr int batches_between_looks = 256;
  const StopSignals signals;
  PosixDisk disk;
  const auto info = inspect_journal(disk, options.data, InspectDepth::blocks);
  if (!info) return std::unexpected(info.error());
  const std::uint64_t last = std::min(options.last, info->last.seq);
  const std::uint64_t behind = info->last.index + 1;
  // A batch holds a message or more, but for ticks: what is shown may then be fewer.
  const std::uint64_t from = std::max(info->first_index, behind - std::min(last, behind - 1));
  auto reader = JournalReader::open(disk, options.data, from);
  if (!reader) return std::unexpected(reader.error());
  RecordLines lines(options, {.first = info->last.seq - last + 1, .last = UINT64_MAX});
  for (int printed = 1;; ++printed) {
    const auto batch = reader->next();
    if (!batch) return std::unexpected(batch.error());
    const bool at_end = !*batch;
    if (!at_end && !lines.print(*reader, **batch)) break;
    if (!at_end)
      if (const auto type = lines.check_type(); !type) return std::unexpected(type.error());
    if (at_end)
      if (const auto taken = flush_stdout(); !taken) return std::unexpected(taken.error());
    if ((at_end || printed % batches_between_looks == 0) && signals.wait(at_end ? look_every_ms : 0)) break;
  }
  return lines.damaged() ? ExitCode::damaged : ExitCode::equal;
}

ExitCode exit_of(const Result<ExitCode>& done) {
  return done ? *done : report(done.error());
}

}  // namespace

ExitCode journal_dump_command(const JournalOptionsCli& options) {
  return exit_of(dump(options));
}

ExitCode journal_follow_command(const JournalOptionsCli& options) {
  return exit_of(follow(options));
}

}  // namespace lockstep
