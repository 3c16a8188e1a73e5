// SPDX-License-Identifier: Apache-2.0
#include "journal/spares.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "journal/anchors.hpp"
#include "journal/damaged_header.hpp"
#include "journal/directory.hpp"
#include "journal/segment_scan.hpp"

namespace lockstep {
namespace {

/// Whether an opened segment with blocks ends so that no SEAL of it was ever durable.
bool surely_unsealed(BlockStream& segment, const HardState& state) {
  HistoryPosition position;
  for (bool first = true;; first = false) {
    const BlockExamination block = segment.examine();
    if (block.verdict == BlockVerdict::newer) return false;
    if (block.verdict != BlockVerdict::valid) {
      ScanContext context;
      context.durable_index = known_durable(state);
      const TailClass tail = judge_end(segment, block, position, context).tail;
      return tail == TailClass::clean || tail == TailClass::torn;
    }
    if (block.header->type == BlockType::seal) return false;
    if (first) position = position_before(*block.header);
    if (!is_ignorable(block.header->type)) position = position_behind(position, block);
    segment.accept(block);
  }
}

Finding judge_spare(const SpareFlaw& flaw, const HardState& state, const HistoryPosition& last, bool never_used) {
  Finding finding{flaw.file, 0, 0, last.index + 1, never_used ? TailClass::torn : flaw.if_used, flaw.cause};
  const std::uint64_t durable = known_durable(state);
  if (!never_used && durable > last.index) {
    finding.tail = TailClass::corrupt;
    finding.evidence += fmt::format("; batch {} was durable and is not before it", durable);
  } else if (finding.tail == TailClass::torn) {
    finding.evidence += "; it was made ahead and never used, and the next start makes it anew";
  } else if (finding.tail == TailClass::ambiguous) {
    finding.evidence += "; the segment before is sealed, so this one may have been used";
  }
  return finding;
}

}  // namespace

Result<std::size_t> count_used(Disk& disk, const std::string& directory, std::span<const std::uint64_t> ids,
                               const HardState& state) {
  BlockStream segment(disk);
  std::size_t used = ids.size();
  for (; used > 0; --used) {
    if (auto opened = open_past_header(segment, disk, directory, ids[used - 1], state); !opened)
      return std::unexpected(opened.error());
    if (holds_block(segment)) break;
  }
  if (used == ids.size() || ids[used] > state.newest_segment_id) return used;
  BlockStream next(disk);
  if (auto opened = next.open(directory + "/" + segment_name(ids[used])); !opened)
    return std::unexpected(opened.error());
  if (is_blank(next) || (used > 0 && surely_unsealed(segment, state))) return used;
  return used + 1;
}

std::optional<SpareFlaw> flaw_of_spare(BlockStream& segment, std::uint64_t id, const HardState& state) {
  const SegmentHeader& header = segment.header();
  const auto flaw = [&](std::string cause, TailClass if_used) {
    return SpareFlaw{id, segment.path(), std::move(cause), if_used};
  };
  if (segment.header_known() && (header.segment_id != id || header.cluster_id != state.cluster_id))
    return flaw("its header names another segment or cluster", TailClass::corrupt);
  if (!is_blank(segment)) return flaw("it holds bytes that are no block of it", TailClass::ambiguous);
  const auto& defect = segment.header_defect();
  if (segment.cut_short() && (!defect || segment.header_restored()))
    return flaw("the file is shorter than it was made", TailClass::ambiguous);
  if (defect)
    return flaw(std::string(defect->cause), segment.header_restored() ? TailClass::torn : TailClass::ambiguous);
  return std::nullopt;
}

SpareFlaw missing_spare(const std::string& directory, std::uint64_t id, const HardState& state) {
  return {id, directory + "/" + segment_name(id),
          fmt::format("the segment is missing; the hard state names {} to {}", state.oldest_segment_id,
                      state.newest_segment_id),
          TailClass::corrupt};
}

std::vector<Finding> judge_spares(std::vector<SpareFlaw> flaws, const HardState& state, const UsedEnd& end) {
  std::ranges::sort(flaws, {}, &SpareFlaw::segment_id);
  std::vector<Finding> findings;
  for (const SpareFlaw& flaw : flaws) {
    // One that is as it was made has no SEAL either.
    const bool behind_blank = flaw.segment_id - end.segment_id - 1 > findings.size();
    const bool never_used = end.unsealed || behind_blank || flaw.segment_id > state.newest_segment_id;
    findings.push_back(judge_spare(flaw, state, end.position, never_used));
  }
  return findings;
}

}  // namespace lockstep
