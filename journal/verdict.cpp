// SPDX-License-Identifier: Apache-2.0
#include "journal/verdict.hpp"

#include <fmt/format.h>

namespace lockstep {

const char* name_of(TailClass tail) {
  switch (tail) {
    case TailClass::clean:
      return "clean";
    case TailClass::torn:
      return "torn";
    case TailClass::ambiguous:
      return "ambiguous";
    case TailClass::corrupt:
      return "corrupt";
  }
  return "unknown";
}

TailClass judge_tail(const TailEvidence& evidence) {
  const bool was_durable = evidence.highest_durable >= evidence.bad_block ||
                           evidence.highest_block >= evidence.bad_block + evidence.max_inflight ||
                           evidence.later_segment_has_blocks || evidence.hard_state_covers;
  if (was_durable) return TailClass::corrupt;
  if (evidence.garbage || evidence.short_file) return TailClass::ambiguous;
  return evidence.something_behind ? TailClass::torn : TailClass::clean;
}

std::string describe(const Finding& finding) {
  return fmt::format("{}: offset {}, block {}, batch {}: {}: {}", finding.file, finding.offset, finding.block,
                     finding.index, name_of(finding.tail), finding.evidence);
}

}  // namespace lockstep
