// SPDX-License-Identifier: Apache-2.0
#include "journal/reader.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "journal/directory.hpp"
#include "journal/segment_scan.hpp"

namespace lockstep {

Result<JournalReader> JournalReader::open(Disk& disk, const std::string& directory, std::uint64_t from_index) {
  auto hard_state = look_at_hard_state(disk, directory);
  if (!hard_state) return std::unexpected(hard_state.error());
  JournalReader reader(disk, directory, *hard_state, from_index);
  if (auto found = reader.find_start(); !found) return std::unexpected(found.error());
  return reader;
}

Result<std::optional<std::uint64_t>> JournalReader::first_index_of(std::uint64_t id) {
  if (auto opened = segment_.open(directory_ + "/" + segment_name(id)); !opened) return std::unexpected(opened.error());
  if (segment_.header_defect()) return std::nullopt;
  const BlockExamination first = segment_.examine();
  if (first.verdict != BlockVerdict::valid) return std::nullopt;
  return position_before(*first.header).index + 1;
}

Result<void> JournalReader::find_start() {
  auto files = list_journal(*disk_, directory_);
  if (!files) return std::unexpected(files.error());
  std::erase_if(files->segments, [&](std::uint64_t id) { return id < hard_state_.oldest_segment_id; });
  std::size_t low = 0;  // the last segment that begins at or before from_index_ is in [low, high)
  for (std::size_t high = files->segments.size(); high - low > 1;) {
    const std::size_t middle = low + (high - low) / 2;
    const auto first = first_index_of(files->segments[middle]);
    if (!first) return std::unexpected(first.error());
    (*first && **first <= from_index_ ? low : high) = middle;
  }
  const std::uint64_t start = files->segments.empty() ? hard_state_.oldest_segment_id : files->segments[low];
  if (start > 1 && low == 0 && !files->segments.empty()) {
    const auto first = first_index_of(start);
    if (!first) return std::unexpected(first.error());
    if (*first && from_index_ < **first)
      return fail(ErrorCode::usage,
                  fmt::format("{} begins at batch {}: what is before it was pruned", directory_, **first));
  }
  segment_ = BlockStream(*disk_);
  position_known_ = start == 1;
  segment_id_ = start - 1;
  return {};
}

Result<bool> JournalReader::open_segment(std::uint64_t id) {
  const std::string path = directory_ + "/" + segment_name(id);
  const SegmentHeader previous = segment_.header();
  if (auto opened = segment_.open(path); !opened) {
    auto files = list_journal(*disk_, directory_);
    if (!files) return std::unexpected(files.error());
    // Read again: a restart takes back the segments that were made ahead.
    auto hard_state = look_at_hard_state(*disk_, directory_);
    if (!hard_state) return std::unexpected(hard_state.error());
    const bool expected = id <= hard_state->newest_segment_id ||
                          std::ranges::any_of(files->segments, [&](std::uint64_t other) { return other >= id; });
    if (expected) return fail(ErrorCode::corrupt, fmt::format("{} is missing: {}", path, opened.error().message));
    return false;
  }
  if (const auto& defect = segment_.header_defect())
    return fail(defect->incompatible ? ErrorCode::incompatible : ErrorCode::corrupt,
                fmt::format("{}: {}", path, defect->cause));
  const SegmentHeader& header = segment_.header();
  if (header.cluster_id != hard_state_.cluster_id || header.replica_id != hard_state_.replica_id)
    return fail(ErrorCode::incompatible, fmt::format("{} belongs to another cluster or replica", path));
  const bool follows = previous.segment_id + 1 != id || header.prev_nonce == previous.nonce;
  if (header.segment_id != id || !follows)
    return fail(ErrorCode::corrupt, fmt::format("{} does not follow from the segment before", path));
  return true;
}

Result<bool> JournalReader::next_segment() {
  // Spare segments are made ahead, and removed or remade by a restart: only one with blocks is followed.
  BlockStream peeked(*disk_);
  const std::uint64_t next = segment_id_ + 1;
  if (peeked.open(directory_ + "/" + segment_name(next)) && !peeked.header_defect() && is_blank(peeked)) return false;
  auto opened = open_segment(next);
  if (!opened || !*opened) return opened;
  segment_id_ = next;
  sealed_ = false;
  judged_offset_ = 0;
  return true;
}

Result<std::optional<BatchView>> JournalReader::next() {
  for (;;) {
    if (sealed_) {
      const auto opened = next_segment();
      if (!opened) return std::unexpected(opened.error());
      if (!*opened) return std::nullopt;
    }
    const BlockExamination block = segment_.examine();
    if (auto error = unusable(segment_, block)) return std::unexpected(std::move(*error));
    if (block.verdict != BlockVerdict::valid) {
      const auto ended = at_end(block);
      if (!ended) return std::unexpected(ended.error());
      if (*ended) return std::nullopt;
      continue;
    }
    const BlockHeader& header = *block.header;
    if (!std::exchange(position_known_, true)) position_ = position_before(header);
    if (!is_ignorable(header.type))
      if (const auto defect = continuity_defect(position_, header)) return std::unexpected(damage(*defect));
    if (header.type == BlockType::schema) keep_schema(block);
    if (header.type == BlockType::seal) sealed_ = true;
    const bool is_batch = header.type == BlockType::batch;
    if (is_batch) batch_ = batch_header_of(header);
    segment_.accept(block);
    tail_.reset();
    if (!is_batch) continue;
    position_ = position_after(batch_);
    if (batch_.index >= from_index_) return BatchView{&batch_, block.payload};
  }
}

Result<bool> JournalReader::at_end(const BlockExamination& bad) {
  ScanContext context;
  context.durable_index = hard_state_.durable_index;
  const bool judged_before = std::exchange(judged_offset_, segment_.offset()) == segment_.offset();
  EndJudgement end;
  if (!judged_before) {
    auto later = later_segment_has_blocks();
    if (!later) return std::unexpected(later.error());
    context.later_segment_has_blocks = *later;
    end = judge_end(segment_, bad, position_, context);
  }
  // A writer may have gone on since the block was looked at.
  segment_.refresh();
  if (segment_.examine().verdict == BlockVerdict::valid) return false;
  if (end.tail == TailClass::corrupt) return fail(ErrorCode::corrupt, describe(*end.finding));
  if (!judged_before) tail_ = end.finding;
  return true;
}

Result<bool> JournalReader::later_segment_has_blocks() const {
  auto files = list_journal(*disk_, directory_);
  if (!files) return std::unexpected(files.error());
  for (const std::uint64_t id : files->segments) {
    if (id <= segment_id_) continue;
    BlockStream segment(*disk_);
    if (auto opened = segment.open(directory_ + "/" + segment_name(id)); !opened)
      return std::unexpected(opened.error());
    if (!is_blank(segment)) return true;
  }
  return false;
}

Error JournalReader::damage(std::string_view cause) const {
  return {ErrorCode::corrupt, fmt::format("{}: offset {}, block {}, batch {}: {}", segment_.path(), segment_.offset(),
                                          segment_.next_block_no(), position_.index + 1, cause)};
}

void JournalReader::keep_schema(const BlockExamination& block) {
  const std::uint64_t id = block.header->schema_id;
  if (schema(id).empty()) schemas_.push_back({id, {block.payload.begin(), block.payload.end()}});
}

std::span<const std::byte> JournalReader::schema(std::uint64_t schema_id) const {
  const auto found = std::ranges::find(schemas_, schema_id, &Schema::id);
  return found == schemas_.end() ? std::span<const std::byte>{} : std::span<const std::byte>(found->bytes);
}

}  // namespace lockstep
