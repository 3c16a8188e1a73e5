// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "journal/hash_log.hpp"
#include "journal/inspect.hpp"
#include "journal/posix_disk.hpp"
#include "journal/repair.hpp"
#include "journal/slice.hpp"
#include "replay/commands.hpp"
#include "replay/journal_range.hpp"
#include "replay/output.hpp"
#include "replay/progress.hpp"

namespace lockstep {
namespace {

nlohmann::json hole_json(const Hole& hole) {
  return {{"segment", hole.segment_id},
          {"first_batch", hole.before.index + 1},
          {"last_batch", hole.last_index},
          {"end_known", hole.chain.has_value()},
          {"cause", hole.cause}};
}

struct Repaired {
  RepairReport report;
  std::vector<Finding> findings;  ///< that are left
  bool sound = false;
};

Result<Repaired> repair(const JournalRepairOptions& options) {
  PosixDisk disk;
  auto report = repair_journal(disk, options.data, options.accept_tail);
  if (!report) return std::unexpected(report.error());
  auto info = inspect_journal(disk, options.data, InspectDepth::state);
  if (!info) return std::unexpected(info.error());
  const bool sound = info->sound();
  return Repaired{std::move(*report), std::move(info->findings), sound};
}

void print_json(const JournalRepairOptions& options, const Repaired& repaired) {
  nlohmann::json out{{"schema", "lockstep.journal.repair/1"}, {"data", options.data},
                     {"done", repaired.report.done},          {"sound", repaired.sound},
                     {"missing", nlohmann::json::array()},    {"left", nlohmann::json::array()}};
  for (const Hole& hole : repaired.report.left) out["missing"].push_back(hole_json(hole));
  for (const Finding& finding : repaired.findings) out["left"].push_back(describe(finding));
  print_json_line(out);
}

void print_text(const Repaired& repaired) {
  for (const std::string& done : repaired.report.done) fmt::print("{}\n", done);
  for (const Hole& hole : repaired.report.left) fmt::print("{}\n", describe(hole));
  if (repaired.report.left.empty())
    for (const Finding& finding : repaired.findings) fmt::print("{}\n", describe(finding));
  const bool ambiguous = std::ranges::any_of(
      repaired.findings, [](const Finding& finding) { return finding.tail == TailClass::ambiguous; });
  const bool only_roots = std::ranges::all_of(
      repaired.findings, [](const Finding& finding) { return finding.file.ends_with(hash_log_name); });
  if (repaired.sound) {
    fmt::print("{}\n", repaired.report.done.empty() ? "nothing to repair" : "repaired: the journal is sound");
  } else if (!repaired.report.left.empty()) {
    fmt::print("NOT REPAIRED: batches are missing; restore the directory from a backup or from another replica\n");
  } else if (only_roots) {
    fmt::print("NOT REPAIRED: the journal itself lacks nothing\n");
  } else {
    fmt::print("NOT REPAIRED: {}\n", ambiguous ? "--accept-tail cuts what may or may not have been acknowledged"
                                               : "what is missing has to come from a backup or from another replica");
  }
}

Result<Slice> cut(const JournalCutOptions& options) {
  PosixDisk disk;
  std::uint64_t last_seq = 0;
  if (options.range.find('-') != std::string::npos || options.range.find("end") != std::string::npos) {
    const auto info = inspect_journal(disk, options.from, InspectDepth::blocks);
    if (!info) return std::unexpected(info.error());
    last_seq = info->last.seq;
  }
  const auto range = parse_seq_range(options.range, last_seq);
  if (!range) return std::unexpected(range.error());
  auto slice = cut_slice(disk, {.from = options.from,
                                .to = options.to,
                                .first_seq = range->first,
                                .last_seq = range->last,
                                .with_snapshot = options.with_snapshot});
  if (slice && !options.range.empty() && slice->last.seq < range->last)
    fmt::print(stderr, "note: the journal ends at seq {}, within the range {}: the slice ends there\n", slice->last.seq,
               options.range);
  return slice;
}

}  // namespace

ExitCode journal_repair_command(const JournalRepairOptions& options) {
  const auto repaired = repair(options);
  if (!repaired) return report(repaired.error());
  if (options.json) {
    print_json(options, *repaired);
  } else {
    print_text(*repaired);
  }
  return repaired->sound ? ExitCode::equal : ExitCode::damaged;
}

ExitCode journal_cut_command(const JournalCutOptions& options) {
  const auto slice = cut(options);
  if (!slice) return report(slice.error());
  if (slice->skips_left_out > 0)
    fmt::print(stderr, "lockstep: {} skips of messages in this slice stand behind its end: a replay of it runs them\n",
               slice->skips_left_out);
  if (options.json) {
    nlohmann::json out{{"schema", "lockstep.journal.cut/1"},
                       {"from", options.from},
                       {"to", options.to},
                       {"first_batch", slice->before.index + 1},
                       {"last_batch", slice->last.index},
                       {"first_seq", slice->before.seq + 1},
                       {"last_seq", slice->last.seq},
                       {"chain", slice->last.chain.hex()},
                       {"snapshot", nullptr}};
    if (slice->snapshot) out["snapshot"] = *slice->snapshot;
    print_json_line(out);
  } else {
    fmt::print("{}: batches {}..{}   seq {}..{}   {}\n", options.to, with_separators(slice->before.index + 1),
               with_separators(slice->last.index), with_separators(slice->before.seq + 1),
               with_separators(slice->last.seq),
               slice->snapshot ? fmt::format("behind the snapshot of batch {}", with_separators(*slice->snapshot))
                               : std::string("from the first batch"));
  }
  return ExitCode::equal;
}

}  // namespace lockstep
