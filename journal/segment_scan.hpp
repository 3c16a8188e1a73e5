// SPDX-License-Identifier: Apache-2.0
#pragma once

/// Scanning a segment from its header to its end: what it holds, where its good part ends, and what the decision table
/// says of that end. Recovery and `journal verify` stand on it. Reads only.

#include <optional>
#include <span>
#include <vector>

#include "journal/anchors.hpp"
#include "journal/block_stream.hpp"
#include "journal/segment_file.hpp"
#include "journal/trail.hpp"
#include "journal/verdict.hpp"

namespace lockstep {

struct ScanContext {
  /// Where the segment before ended; taken from the first block when it is not known, and then that block must be
  /// there.
  std::optional<HistoryPosition> before;
  std::uint64_t durable_index = 0;  ///< known_durable() of what is known
  std::string_view durable_source = "the hard state";
  bool begins_history = false;  ///< the oldest segment of a pruned journal, which always holds a durable block
  bool later_segment_has_blocks = false;
  bool from_middle = false;    ///< the scan begins behind damage, and so does what is counted
  bool check_records = false;  ///< each record by its own check too, not only each batch
  Trail* trail = nullptr;      ///< where TRUNCATE blocks may occur: kept over the segments of a history
  std::span<Anchor> anchors;   ///< those passed are met
};

struct SegmentScan {
  std::uint64_t blocks = 0;
  std::uint64_t batches = 0;
  std::uint64_t records = 0;
  std::uint64_t payload_bytes = 0;
  std::uint64_t first_index = 0;  ///< 0 without batches
  bool sealed = false;
  bool blank = false;            ///< no block, nor a trace of one
  bool has_skips = false;        ///< some batch is an order to skip
  std::uint64_t end_offset = 0;  ///< behind the last good block
  std::uint32_t next_block_no = 1;
  Digest last_checksum;  ///< of the last good block, or of the segment header
  HistoryPosition before;
  HistoryPosition position;
  SealBuilder seal;  ///< what a SEAL at end_offset would say
  std::vector<std::uint64_t> schema_ids;
  TailClass tail = TailClass::clean;
  std::optional<Finding> finding;  ///< when the tail is not clean
};

/// Scans an opened segment whose header is known. An Error means that it is intact but not for this program.
[[nodiscard]] Result<SegmentScan> scan_segment(BlockStream& segment, const ScanContext& context);

/// What the decision table says of a history that ends at `position` because `bad` was found at segment.offset().
struct EndJudgement {
  TailClass tail = TailClass::clean;
  bool blank = false;              ///< nothing but zeros from there on
  std::optional<Finding> finding;  ///< when the tail is not clean
};
[[nodiscard]] EndJudgement judge_end(BlockStream& segment, const BlockExamination& bad, const HistoryPosition& position,
                                     const ScanContext& context);

/// True when there is neither a block nor a trace of one behind the header, as in a segment made ahead. Whether one was
/// lost, of a file whose header is damaged or which is shorter than it was made, journal/spares.hpp judges.
[[nodiscard]] bool is_blank(BlockStream& segment);
/// True when some block of it verifies, be it behind damage.
[[nodiscard]] bool holds_block(BlockStream& segment);

/// Why an opened segment is not one of this directory, or not for this program, whatever its blocks are.
[[nodiscard]] std::optional<Error> foreign(const BlockStream& segment, const HardState& state);

/// Why an intact block cannot be used here, as an Error; nothing when it can.
[[nodiscard]] std::optional<Error> unusable(const BlockStream& segment, const BlockExamination& block,
                                            bool has_truncates);

/// True for a block of an unknown type that may be passed over.
[[nodiscard]] bool is_ignorable(BlockType type);

/// The position a segment's first block follows from, as that block states it.
[[nodiscard]] HistoryPosition position_before(const BlockHeader& block);

}  // namespace lockstep
