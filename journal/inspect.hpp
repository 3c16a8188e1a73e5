// SPDX-License-Identifier: Apache-2.0
#pragma once

/// Inspecting a whole journal, for tools: what it holds, and everything that is wrong with it. It goes past damage to
/// what can be read behind it, never writes, takes no lock and works on a live journal, where the last segment may look
/// torn for the moment.

#include <string>
#include <vector>

#include "journal/hard_state.hpp"
#include "journal/verdict.hpp"

namespace lockstep {

struct SegmentInfo {
  std::string file;
  std::uint64_t segment_id = 0;
  std::uint64_t file_bytes = 0;
  std::uint64_t used_bytes = 0;  ///< up to the end of the last good block
  std::uint64_t blocks = 0;
  std::uint64_t batches = 0;
  std::uint64_t records = 0;
  std::uint64_t payload_bytes = 0;
  std::uint64_t first_index = 0;  ///< 0 without batches
  std::uint64_t last_index = 0;
  std::uint64_t incarnation = 0;
  bool sealed = false;
  bool spare = false;  ///< made ahead, not used yet
};

struct JournalInfo {
  HardState hard_state;
  std::vector<SegmentInfo> segments;
  std::uint64_t first_index = 1;  ///< of the first batch there is: more than 1 when what was before it was pruned
  std::uint64_t first_seq = 1;
  HistoryPosition last;  ///< where the undamaged history ends
  std::vector<std::uint64_t> schema_ids;
  std::vector<Finding> findings;
  /// No finding, or none but what a start would cut or make anew: a torn tail, of the hash log too.
  [[nodiscard]] bool sound() const;
};

enum class InspectDepth {
  blocks,
  records,  ///< each record too
  state,    ///< and the snapshots: whether there is a state that the history goes on from
};

/// Reads every segment. An Error when there is no journal, or what is there is of a newer version or another cluster.
[[nodiscard]] Result<JournalInfo> inspect_journal(Disk& disk, const std::string& directory, InspectDepth depth);

}  // namespace lockstep
