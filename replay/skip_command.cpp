// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "base/clock.hpp"
#include "journal/posix_disk.hpp"
#include "journal/skips.hpp"
#include "replay/commands.hpp"

namespace lockstep {

ExitCode skip_command(const SkipOptions& options) {
  PosixDisk disk;
  const auto seq = append_skip(disk, options.data, options.seq, SystemClock().real_ns());
  if (!seq) return report(seq.error());
  if (options.json) {
    fmt::print(
        "{}\n",
        nlohmann::json{
            {"schema", "lockstep.skip/1"}, {"data", options.data}, {"skipped_seq", options.seq}, {"order_seq", *seq}}
            .dump());
    return ExitCode::equal;
  }
  fmt::print("{}: seq {} will be passed over, with all that it would have caused; the order stands at seq {}\n",
             options.data, options.seq, *seq);
  return ExitCode::equal;
}

}  // namespace lockstep
