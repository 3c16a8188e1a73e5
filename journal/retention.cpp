// SPDX-License-Identifier: Apache-2.0
#include "journal/retention.hpp"

#include <ranges>
#include <vector>

#include "journal/block_stream.hpp"
#include "journal/directory.hpp"
#include "journal/hard_state.hpp"
#include "journal/segment_scan.hpp"

namespace lockstep {

Result<std::uint64_t> first_batch_to_keep(Disk& disk, const std::string& directory, const Retention& retention,
                                          std::int64_t now_ns) {
  const auto state = look_at_hard_state(disk, directory);
  if (!state) return std::unexpected(state.error());
  auto files = list_journal(disk, directory);
  if (!files) return std::unexpected(files.error());
  std::uint64_t bytes = 0;
  std::uint64_t keep_from = 0;
  // From the newest back: a segment begins where the one after it ends.
  for (const std::uint64_t id : std::ranges::reverse_view(files->segments)) {
    if (id < state->oldest_segment_id) break;
    BlockStream segment(disk);
    if (auto opened = segment.open(directory + "/" + segment_name(id)); !opened) return std::unexpected(opened.error());
    if (is_blank(segment)) continue;
    const BlockExamination first = segment.examine();
    if (first.verdict != BlockVerdict::valid) return keep_from;
    const HistoryPosition before = position_before(*first.header);
    bytes += segment.file_bytes();
    keep_from = before.index + 1;
    const bool next_is_too_old = retention.max_age_ns != 0 && now_ns - before.time_ns > retention.max_age_ns;
    if (bytes >= retention.max_bytes || next_is_too_old) return keep_from;
  }
  return 0;
}

}  // namespace lockstep
