// SPDX-License-Identifier: Apache-2.0
#include "journal/verdict.hpp"

#include <doctest/doctest.h>

namespace lockstep {
namespace {

// Block 5 is the first bad one, four may be in flight.
constexpr TailEvidence unacknowledged{.bad_block = 5, .max_inflight = 4, .highest_durable = 4, .highest_block = 8};

TEST_CASE("each row of the decision table") {
  TailEvidence row = unacknowledged;
  CHECK(judge_tail(row) == TailClass::clean);
  row.something_behind = true;
  CHECK(judge_tail(row) == TailClass::torn);
  row.garbage = true;
  CHECK(judge_tail(row) == TailClass::ambiguous);
  row.garbage = false;
  row.short_file = true;
  CHECK(judge_tail(row) == TailClass::ambiguous);
  row.something_behind = false;
  CHECK(judge_tail(row) == TailClass::ambiguous);
}

TEST_CASE("any one proof that the bad block was durable makes it corrupt, whatever it looks like") {
  for (int proof = 0; proof < 4; ++proof) {
    for (int looks = 0; looks < 8; ++looks) {
      TailEvidence row = unacknowledged;
      row.garbage = (looks & 1) != 0;
      row.short_file = (looks & 2) != 0;
      row.something_behind = (looks & 4) != 0;
      if (proof == 0) row.highest_durable = 5;
      if (proof == 1) row.highest_block = 9;
      if (proof == 2) row.later_segment_has_blocks = true;
      if (proof == 3) row.hard_state_covers = true;
      CHECK(judge_tail(row) == TailClass::corrupt);
    }
  }
}

TEST_CASE("a finding names file, offset, block, batch, class and evidence in one line") {
  const Finding finding{"seg-1.jnl", 8192, 2, 17, TailClass::torn, "a piece of the block header was never written"};
  CHECK(describe(finding) ==
        "seg-1.jnl: offset 8192, block 2, batch 17: torn: a piece of the block header was never written");
}

}  // namespace
}  // namespace lockstep
