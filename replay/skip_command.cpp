// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "base/clock.hpp"
#include "base/log.hpp"
#include "journal/directory.hpp"
#include "journal/posix_disk.hpp"
#include "journal/skips.hpp"
#include "replay/commands.hpp"
#include "replay/output.hpp"
#include "runtime/breadcrumbs.hpp"

namespace lockstep {
namespace {

/// What a node on this directory would halt before.
Result<std::optional<std::uint64_t>> deadly_seq(Disk& disk, const std::string& directory) {
  if (auto there = require_journal(disk, directory); !there) return std::unexpected(there.error());
  const auto skips = read_skips(disk, directory);
  if (!skips) return std::unexpected(skips.error());
  const auto breadcrumbs = Breadcrumbs::look(disk, directory);
  if (!breadcrumbs) return std::unexpected(breadcrumbs.error());
  const auto poison = breadcrumbs->poison(*skips);
  return poison ? std::optional(poison->seq) : std::nullopt;
}

}  // namespace

ExitCode skip_command(const SkipOptions& options) {
  PosixDisk disk;
  const auto deadly = deadly_seq(disk, options.data);
  if (!deadly) return report(deadly.error());
  std::vector<Finding> findings;
  const auto seq = append_skip(disk, options.data, options.seq, *deadly, SystemClock().real_ns(), {}, &findings);
  if (!seq) return report(seq.error());
  for (const Finding& finding : findings) log(LogLevel::warning, "journal", "{}", describe(finding));
  if (options.json) {
    print_json_line(
        {{"schema", "lockstep.skip/1"}, {"data", options.data}, {"skipped_seq", options.seq}, {"order_seq", *seq}});
    return ExitCode::equal;
  }
  fmt::print("{}: seq {} will be passed over, with all that it would have caused; the order stands at seq {}\n",
             options.data, options.seq, *seq);
  return ExitCode::equal;
}

}  // namespace lockstep
