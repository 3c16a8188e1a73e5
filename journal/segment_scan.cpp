// SPDX-License-Identifier: Apache-2.0
#include "journal/segment_scan.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "journal/skips.hpp"

namespace lockstep {
namespace {

std::optional<std::string_view> seal_defect(const SegmentScan& scan, std::span<const std::byte> payload,
                                            bool from_middle) {
  const auto seal = parse_seal(payload);
  if (!seal) return "the SEAL's lengths contradict one another";
  const SealSummary& summary = *seal->summary;
  if ((summary.batches != scan.batches && !from_middle) || summary.last_index != scan.position.index ||
      summary.last_seq != scan.position.seq || summary.last_chain != scan.position.chain)
    return "the SEAL does not tell what is before it";
  return std::nullopt;
}

/// What speaks against a block that is sound in itself.
std::optional<std::string_view> defect_in_history(const SegmentScan& scan, const BlockExamination& block,
                                                  const ScanContext& context) {
  const BlockHeader& header = *block.header;
  if (is_ignorable(header.type)) return std::nullopt;
  if (const auto defect = continuity_defect(scan.position, header)) return defect;
  if (header.type == BlockType::seal) return seal_defect(scan, block.payload, context.from_middle);
  if (header.type == BlockType::truncate && context.trail != nullptr) {
    const auto target = parse_truncate(block.payload);
    return target ? context.trail->defect_of(*target) : std::optional<std::string_view>("its length does not fit");
  }
  if (header.type != BlockType::batch || !context.check_records) return std::nullopt;
  const BatchHeader batch = batch_header_of(header);
  const auto defect = batch_defect({&batch, block.payload});
  if (!defect) return std::nullopt;
  return *defect;
}

void take(SegmentScan& scan, const BlockExamination& block, std::uint64_t offset, Trail* trail) {
  const BlockHeader& header = *block.header;
  ++scan.blocks;
  if (header.type == BlockType::seal) scan.sealed = true;
  if (header.type == BlockType::schema) scan.schema_ids.push_back(header.schema_id);
  if (header.type == BlockType::truncate) {
    scan.position = position_behind(scan.position, block);
    scan.seal.go_back(scan.position);
    if (trail != nullptr) trail->go_back(scan.position);
  }
  if (header.type != BlockType::batch) return;
  const BatchHeader batch = batch_header_of(header);
  scan.seal.add_batch(batch, offset);
  scan.position = position_after(batch);
  scan.has_skips = scan.has_skips || is_skip({&batch, block.payload});
  if (trail != nullptr) trail->pass(scan.position, header.commit_index);
  if (scan.batches++ == 0) scan.first_index = batch.index;
  scan.records += batch.record_count;
  scan.payload_bytes += batch.payload_bytes;
}

std::string evidence_text(const TailEvidence& evidence, std::string_view cause, const ScanContext& context) {
  std::string text(cause);
  if (evidence.highest_durable >= evidence.bad_block)
    text += fmt::format("; a later block states that block {} was durable", evidence.highest_durable);
  if (evidence.highest_block >= evidence.bad_block + evidence.max_inflight)
    text += fmt::format("; block {} was submitted only when this one was durable", evidence.highest_block);
  if (evidence.later_segment_has_blocks) text += "; a later segment has blocks";
  if (evidence.hard_state_covers)
    text += fmt::format("; {} knows batch {} as durable", context.durable_source, context.durable_index);
  if (evidence.short_file) text += "; the file is shorter than it was made";
  return text;
}

/// The block at the segment's offset, its meaning checked too; garbage with a cause when it does not fit.
BlockExamination examine_in_history(BlockStream& segment, const SegmentScan& scan, const ScanContext& context) {
  BlockExamination block = segment.examine();
  if (block.verdict != BlockVerdict::valid) return block;
  const auto defect = defect_in_history(scan, block, context);
  if (!defect) return block;
  block.verdict = BlockVerdict::garbage;
  block.bad_offset = segment.offset();
  block.cause = *defect;
  return block;
}

void start_history(SegmentScan& scan, BlockStream& segment, const ScanContext& context) {
  if (context.before) {
    scan.position = *context.before;
  } else if (const BlockExamination first = segment.examine(); first.verdict == BlockVerdict::valid) {
    scan.position = position_before(*first.header);
  }
  scan.before = scan.position;
  if (context.trail != nullptr && !context.before) context.trail->start(scan.position);
  meet(context.anchors, scan.position);
  scan.seal.start(segment.header(), scan.position);
}

}  // namespace

bool is_ignorable(BlockType type) {
  return (static_cast<std::uint8_t>(type) & ignorable_block_bit) != 0;
}

EndJudgement judge_end(BlockStream& segment, const BlockExamination& bad, const HistoryPosition& position,
                       const ScanContext& context) {
  const BlockStream::Remainder behind = segment.look_behind();
  TailEvidence evidence;
  evidence.bad_block = segment.next_block_no();
  evidence.max_inflight = segment.header().max_inflight;
  evidence.highest_durable = behind.highest_durable;
  evidence.highest_block = behind.highest_block;
  evidence.later_segment_has_blocks = context.later_segment_has_blocks;
  evidence.hard_state_covers =
      context.durable_index > position.index || (context.begins_history && segment.next_block_no() == 1);
  evidence.garbage = bad.verdict == BlockVerdict::garbage;
  evidence.short_file = segment.file_bytes() < segment.header().segment_bytes;
  evidence.something_behind = !behind.blank;
  EndJudgement result;
  result.tail = judge_tail(evidence);
  result.blank = behind.blank;
  if (result.tail == TailClass::clean) return result;
  const std::string_view cause = behind.blank ? std::string_view("nothing is there") : bad.cause;
  result.finding =
      Finding{segment.path(), std::max(bad.bad_offset, segment.offset()), segment.next_block_no(), position.index + 1,
              result.tail,    evidence_text(evidence, cause, context)};
  return result;
}

HistoryPosition position_before(const BlockHeader& block) {
  const bool is_batch = block.type == BlockType::batch;
  return {block.index - (is_batch ? 1 : 0), block.first_seq - 1, block.first_time_ns, block.prev_chain};
}

std::optional<Error> unusable(const BlockStream& segment, const BlockExamination& block, bool has_truncates) {
  if (block.verdict == BlockVerdict::newer)
    return Error{ErrorCode::incompatible,
                 fmt::format("{}: offset {}: {}; use a newer lockstep", segment.path(), segment.offset(), block.cause)};
  if (block.verdict == BlockVerdict::valid && block.header->type == BlockType::truncate && !has_truncates)
    return Error{ErrorCode::incompatible,
                 fmt::format("{}: offset {}: a TRUNCATE block, which the hard state knows nothing of: it is "
                             "of a cluster's member",
                             segment.path(), segment.offset())};
  return std::nullopt;
}

bool is_blank(BlockStream& segment) {
  return segment.examine().verdict != BlockVerdict::valid && segment.look_behind().blank;
}

bool holds_block(BlockStream& segment) {
  const BlockVerdict first = segment.examine().verdict;
  return first == BlockVerdict::valid || first == BlockVerdict::newer || segment.look_behind().highest_block > 0;
}

std::optional<Error> foreign(const BlockStream& segment, const HardState& state) {
  const auto& defect = segment.header_defect();
  if (defect && defect->incompatible)
    return Error{ErrorCode::incompatible, fmt::format("{}: {}", segment.path(), defect->cause)};
  const SegmentHeader& header = segment.header();
  if (!segment.header_known() || (header.cluster_id == state.cluster_id && header.replica_id == state.replica_id))
    return std::nullopt;
  return Error{ErrorCode::incompatible,
               fmt::format("{} belongs to cluster {}, replica {}, and the hard state beside it to cluster {}, replica "
                           "{}; put the right file back, or move a segment away that was never used here",
                           segment.path(), header.cluster_id.hex(), header.replica_id, state.cluster_id.hex(),
                           state.replica_id)};
}

Result<SegmentScan> scan_segment(BlockStream& segment, const ScanContext& context) {
  SegmentScan scan;
  start_history(scan, segment, context);
  EndJudgement end;
  while (!scan.sealed) {
    BlockExamination block = examine_in_history(segment, scan, context);
    if (block.verdict == BlockVerdict::old_content || block.verdict == BlockVerdict::garbage) {
      end = judge_end(segment, block, scan.position, context);
      // A writer may have gone on between the looks at this block and at those behind it.
      segment.refresh();
      block = examine_in_history(segment, scan, context);
    }
    if (auto error = unusable(segment, block, context.trail != nullptr)) return std::unexpected(std::move(*error));
    if (block.verdict != BlockVerdict::valid) break;
    end = {};
    take(scan, block, segment.offset(), context.trail);
    meet(context.anchors, scan.position);
    segment.accept(block);
  }
  scan.end_offset = segment.offset();
  scan.next_block_no = segment.next_block_no();
  scan.last_checksum = segment.last_checksum();
  scan.blank = scan.blocks == 0 && end.blank;
  scan.tail = end.tail;
  scan.finding = end.finding;
  return scan;
}

}  // namespace lockstep
