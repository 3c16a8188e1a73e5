// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "journal/inspect.hpp"
#include "journal/posix_disk.hpp"
#include "replay/commands.hpp"
#include "replay/output.hpp"
#include "replay/progress.hpp"
#include "replay/record_printer.hpp"

namespace lockstep {
namespace {

nlohmann::json finding_json(const Finding& finding) {
  return {{"file", finding.file},   {"offset", finding.offset},       {"block", finding.block},
          {"batch", finding.index}, {"class", name_of(finding.tail)}, {"evidence", finding.evidence}};
}

nlohmann::json info_json(const JournalInfo& info, const std::string& data) {
  nlohmann::json out{{"schema", "lockstep.journal.info/1"},
                     {"data", data},
                     {"cluster", info.hard_state.cluster_id.hex()},
                     {"replica", info.hard_state.replica_id},
                     {"incarnation", info.hard_state.incarnation},
                     {"first_batch", info.first_index},
                     {"first_seq", info.first_seq},
                     {"last_batch", info.last.index},
                     {"last_seq", info.last.seq},
                     {"last_time_ns", info.last.time_ns},
                     {"chain", info.last.chain.hex()},
                     {"sound", info.sound()},
                     {"segments", nlohmann::json::array()},
                     {"findings", nlohmann::json::array()}};
  for (const SegmentInfo& segment : info.segments)
    out["segments"].push_back({{"file", segment.file},
                               {"bytes", segment.file_bytes},
                               {"used_bytes", segment.used_bytes},
                               {"batches", segment.batches},
                               {"first_batch", segment.first_index},
                               {"last_batch", segment.last_index},
                               {"records", segment.records},
                               {"sealed", segment.sealed},
                               {"spare", segment.spare}});
  for (const Finding& finding : info.findings) out["findings"].push_back(finding_json(finding));
  return out;
}

void print_findings(const JournalInfo& info) {
  for (const Finding& finding : info.findings) fmt::print("{}\n", describe(finding));
}

}  // namespace

ExitCode journal_info_command(const JournalOptionsCli& options) {
  PosixDisk disk;
  const auto info = inspect_journal(disk, options.data, InspectDepth::blocks);
  if (!info) return report(info.error());
  if (options.json) {
    print_json_line(info_json(*info, options.data));
    return info->sound() ? ExitCode::equal : ExitCode::damaged;
  }
  std::uint64_t bytes = 0;
  std::uint64_t spares = 0;
  for (const SegmentInfo& segment : info->segments) {
    bytes += segment.used_bytes;
    spares += segment.spare ? 1 : 0;
  }
  fmt::print("journal    {}   {} segments and {} spare, {:.2f} MiB used\n", options.data,
             info->segments.size() - spares, spares, static_cast<double>(bytes) / (1 << 20));
  fmt::print("cluster    {}   replica {}   incarnation {}\n", info->hard_state.cluster_id.hex(),
             info->hard_state.replica_id, info->hard_state.incarnation);
  fmt::print("history    batches {}..{}   seq {}..{}   last stamp {}\n", with_separators(info->first_index),
             with_separators(info->last.index), with_separators(info->first_seq), with_separators(info->last.seq),
             info->last.index == 0 ? "none" : time_text(info->last.time_ns));
  fmt::print("chain      {}\n", info->last.chain.short_hex());
  print_findings(*info);
  return info->sound() ? ExitCode::equal : ExitCode::damaged;
}

ExitCode journal_verify_command(const JournalOptionsCli& options) {
  PosixDisk disk;
  const auto info = inspect_journal(disk, options.data, InspectDepth::state);
  if (!info) return report(info.error());
  if (options.json) {
    print_json_line(info_json(*info, options.data));
  } else {
    std::uint64_t batches = 0;
    std::uint64_t records = 0;
    for (const SegmentInfo& segment : info->segments) {
      batches += segment.batches;
      records += segment.records;
    }
    fmt::print("{} segments, {} batches, {} records read\n", info->segments.size(), with_separators(batches),
               with_separators(records));
    print_findings(*info);
    fmt::print("{}\n", !info->sound() ? "DAMAGED" : info->findings.empty() ? "ok" : "ok, with notes");
  }
  return info->sound() ? ExitCode::equal : ExitCode::damaged;
}

}  // namespace lockstep
