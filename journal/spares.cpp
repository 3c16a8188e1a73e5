// SPDX-License-Identifier: Apache-2.0
#include "journal/spares.hpp"

#include <fmt/format.h>

#include "journal/anchors.hpp"
#include "journal/directory.hpp"

namespace lockstep {

std::optional<SpareFlaw> flaw_of_spare(const BlockStream& segment, std::uint64_t id, const HardState& state) {
  const SegmentHeader& header = segment.header();
  const auto flaw = [&](std::string cause, TailClass if_used) {
    return SpareFlaw{id, segment.path(), std::move(cause), if_used};
  };
  if (segment.header_known() && (header.segment_id != id || header.cluster_id != state.cluster_id))
    return flaw("its header names another segment or cluster", TailClass::corrupt);
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

Finding judge_spare(const SpareFlaw& flaw, const HardState& state, const HistoryPosition& last, bool unsealed) {
  const bool never_used = unsealed || flaw.segment_id > state.newest_segment_id;
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

}  // namespace lockstep
