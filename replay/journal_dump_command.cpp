// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>

#include "journal/inspect.hpp"
#include "journal/posix_disk.hpp"
#include "journal/reader.hpp"
#include "replay/commands.hpp"
#include "replay/journal_range.hpp"
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
    RecordCursor records(batch.payload);
    while (const auto record = records.next()) {
      if (!range_.contains(record->header->seq) || !printer_.matches(*record)) continue;
      if (!printer_.print(*record, batch.header->index)) damaged_ = true;
      if (++printed_ == limit_) return false;
    }
    return true;
  }
  [[nodiscard]] bool damaged() const { return damaged_; }

 private:
  RecordPrinter printer_;
  SeqRange range_;
  std::uint64_t limit_;
  std::uint64_t printed_ = 0;
  bool damaged_ = false;  ///< a record was not what its schema says
};

/// Says on stderr what is damaged and goes behind it; false when nothing is there.
Result<bool> go_past(JournalReader& reader, const Error& error) {
  if (error.code != ErrorCode::corrupt) return std::unexpected(error);
  fmt::print(stderr, "lockstep: {}\n", error.message);
  return reader.pass_damage();
}

Result<ExitCode> dump(const JournalOptionsCli& options) {
  PosixDisk disk;
  const bool counts_from_end =
      options.range.find('-') != std::string::npos || options.range.find("end") != std::string::npos;
  const auto info = counts_from_end ? inspect_journal(disk, options.data, InspectDepth::blocks) : JournalInfo{};
  if (!info) return std::unexpected(info.error());
  const auto range = parse_seq_range(options.range, info->last.seq);
  if (!range) return std::unexpected(range.error());
  auto reader = JournalReader::open(disk, options.data, 0);
  if (!reader) return std::unexpected(reader.error());
  RecordLines lines(options, *range);
  bool damaged = false;
  for (;;) {
    const auto batch = reader->next();
    if (!batch) {
      damaged = true;
      const auto passed = go_past(*reader, batch.error());
      if (!passed) return std::unexpected(passed.error());
      if (!*passed) break;
      continue;
    }
    if (!*batch || (*batch)->header->first_seq > range->last || !lines.print(*reader, **batch)) break;
  }
  if (reader->tail()) fmt::print(stderr, "note: {}\n", describe(*reader->tail()));
  return damaged || lines.damaged() ? ExitCode::damaged : ExitCode::equal;
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
    if (at_end) std::fflush(stdout);
    if ((at_end || printed % batches_between_looks == 0) && signals.wait(at_end ? look_every_ms : 0)) break;
  }
  std::fflush(stdout);
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
