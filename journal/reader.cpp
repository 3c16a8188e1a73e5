// SPDX-License-Identifier: Apache-2.0
#include "journal/reader.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "journal/damaged_header.hpp"
#include "journal/directory.hpp"
#include "journal/segment_scan.hpp"

namespace lockstep {

Result<JournalReader> JournalReader::open(Disk& disk, const std::string& directory, std::uint64_t from_index) {
  auto hard_state = look_at_hard_state(disk, directory);
  if (!hard_state) return std::unexpected(hard_state.error());
  JournalReader reader(disk, directory, *hard_state, from_index);
  if (auto found = reader.find_start(); !found) return std::unexpected(found.error());
  if (auto looked = reader.look_ahead_for_truncates(); !looked) return std::unexpected(looked.error());
  if (auto passed = reader.pass_to_start(); !passed) return std::unexpected(passed.error());
  return reader;
}

Result<std::optional<HistoryPosition>> JournalReader::start_of(std::uint64_t id) {
  if (auto opened = segment_.open(directory_ + "/" + segment_name(id)); !opened) return std::unexpected(opened.error());
  if (!segment_.header_known()) return std::nullopt;
  const BlockExamination first = segment_.examine();
  if (first.verdict != BlockVerdict::valid) return std::nullopt;
  return position_before(*first.header);
}

Result<void> JournalReader::find_start() {
  auto files = list_journal(*disk_, directory_);
  if (!files) return std::unexpected(files.error());
  std::vector<std::uint64_t>& ids = files->segments;
  // Read behind the listing: what it calls the oldest was there then, or is lost.
  auto hard_state = look_at_hard_state(*disk_, directory_);
  if (!hard_state) return std::unexpected(hard_state.error());
  hard_state_ = *hard_state;
  std::erase_if(ids, [&](std::uint64_t id) { return id < hard_state_.oldest_segment_id; });
  std::uint64_t start = hard_state_.oldest_segment_id;
  if (!ids.empty() && ids.front() != start)
    return fail(ErrorCode::corrupt, fmt::format("{}/{} is missing; the hard state names it as the oldest segment",
                                                directory_, segment_name(start)));
  position_known_ = start == 1;
  // The last segment that begins at or before from_index_ is in [low, high).
  std::size_t low = 0;
  for (std::size_t high = ids.size(); from_index_ > 1 && high - low > 1;) {
    const std::size_t middle = low + (high - low) / 2;
    const auto before = start_of(ids[middle]);
    if (!before) return std::unexpected(before.error());
    (*before && (*before)->index < from_index_ ? low : high) = middle;
  }
  if (!ids.empty() && ids[low] > 1) {
    start = ids[low];
    const auto before = start_of(start);
    if (!before) return std::unexpected(before.error());
    position_known_ = before->has_value();
    if (position_known_) position_ = **before;
  }
  if (position_known_ && from_index_ != 0 && from_index_ <= position_.index)
    return fail(ErrorCode::incomplete, fmt::format("{} begins at batch {}: what is before it was pruned; start from "
                                                   "there, or from a snapshot",
                                                   directory_, position_.index + 1));
  begins_history_ = start > 1 && start == hard_state_.oldest_segment_id;
  segment_ = BlockStream(*disk_);
  segment_id_ = start - 1;
  return {};
}

Result<void> JournalReader::look_ahead_for_truncates() {
  if ((hard_state_.flags & hard_state_has_truncates) == 0) return {};
  auto files = list_journal(*disk_, directory_);
  if (!files) return std::unexpected(files.error());
  for (const std::uint64_t id : files->segments) {
    BlockStream segment(*disk_);
    if (id <= segment_id_ || !segment.open(directory_ + "/" + segment_name(id)) || !segment.header_known()) continue;
    for (;;) {
      const BlockExamination block = segment.examine();
      if (block.verdict != BlockVerdict::valid) break;
      const auto target =
          block.header->type == BlockType::truncate ? parse_truncate(block.payload) : std::optional<HistoryPosition>();
      if (target) truncates_.push_back({id, segment.offset(), target->index});
      segment.accept(block);
    }
  }
  return {};
}

bool JournalReader::is_taken_back(std::uint64_t offset, std::uint64_t index) const {
  return std::ranges::any_of(truncates_, [&](const Truncate& truncate) {
    const bool behind =
        truncate.segment_id > segment_id_ || (truncate.segment_id == segment_id_ && truncate.offset > offset);
    return behind && truncate.last_index < index;
  });
}

Result<void> JournalReader::pass_to_start() {
  while (position_.index + 1 < from_index_) {
    const auto passed = next_batch();
    if (!passed && passed.error().code == ErrorCode::corrupt) met_ = passed.error();
    if (!passed && !met_) return std::unexpected(passed.error());
    if (met_ || !*passed) break;
  }
  return {};
}

Result<bool> JournalReader::open_segment(std::uint64_t id) {
  const std::string path = directory_ + "/" + segment_name(id);
  const SegmentHeader previous = segment_.header();
  if (auto opened = open_past_header(segment_, *disk_, directory_, id, hard_state_); !opened) {
    auto files = list_journal(*disk_, directory_);
    if (!files) return std::unexpected(files.error());
    // Read again: a restart takes back the segments that were made ahead.
    auto hard_state = look_at_hard_state(*disk_, directory_);
    if (!hard_state) return std::unexpected(hard_state.error());
    if (id < hard_state->oldest_segment_id)
      return fail(ErrorCode::incomplete,
                  fmt::format("{} was pruned while it was read; start again behind batch {}", path, position_.index));
    const bool expected = id <= hard_state->newest_segment_id ||
                          std::ranges::any_of(files->segments, [&](std::uint64_t other) { return other >= id; });
    if (expected) return fail(ErrorCode::corrupt, fmt::format("{} is missing: {}", path, opened.error().message));
    return false;
  }
  if (auto error = foreign(segment_, hard_state_)) return std::unexpected(std::move(*error));
  if (const auto& defect = segment_.header_defect(); defect && excused_id_ != id)
    return fail(ErrorCode::corrupt, fmt::format("{}: {}", path, defect->cause));
  const SegmentHeader& header = segment_.header();
  const bool follows = previous.segment_id + 1 != id || header.prev_nonce == previous.nonce;
  if (header.segment_id != id || !follows)
    return fail(ErrorCode::corrupt, fmt::format("{} does not follow from the segment before", path));
  return true;
}

Result<bool> JournalReader::next_segment() {
  // Spare segments are made ahead, and removed or remade by a restart: only one with blocks is followed.
  BlockStream peeked(*disk_);
  const std::uint64_t next = segment_id_ + 1;
  const bool blank = peeked.open(directory_ + "/" + segment_name(next)) && peeked.header_known() &&
                     peeked.header().segment_id == next && !peeked.cut_short() && is_blank(peeked);
  const bool was_used = known_durable(hard_state_) > position_.index || begins_history_;
  if (blank && !was_used) return false;
  auto opened = open_segment(next);
  if (!opened || !*opened) return opened;
  segment_id_ = next;
  sealed_ = false;
  judged_offset_ = 0;
  begins_history_ = next > 1 && next == hard_state_.oldest_segment_id;
  return true;
}

Result<std::optional<BatchView>> JournalReader::next() {
  if (met_) return std::unexpected(*met_);
  for (;;) {
    auto batch = next_batch();
    if (!batch || !*batch || (*batch)->header->index >= from_index_) return batch;
  }
}

Result<std::optional<BatchView>> JournalReader::next_batch() {
  for (;;) {
    if (sealed_) {
      const auto opened = next_segment();
      if (!opened) return std::unexpected(opened.error());
      if (!*opened) return std::nullopt;
    }
    const BlockExamination block = segment_.examine();
    if (auto error = unusable(segment_, block, (hard_state_.flags & hard_state_has_truncates) != 0))
      return std::unexpected(std::move(*error));
    if (block.verdict != BlockVerdict::valid) {
      const auto ended = at_end(block);
      if (!ended) return std::unexpected(ended.error());
      if (*ended) return std::nullopt;
      continue;
    }
    const BlockHeader& header = *block.header;
    if (!std::exchange(position_known_, true)) position_ = position_before(header);
    if (!is_ignorable(header.type))
      if (const auto defect = continuity_defect(position_, header)) {
        gap_ = true;
        return std::unexpected(damage(*defect));
      }
    if (header.type == BlockType::schema) keep_schema(block);
    if (header.type == BlockType::seal) sealed_ = true;
    const bool is_batch = header.type == BlockType::batch;
    if (is_batch) batch_ = batch_header_of(header);
    const bool taken_back = is_batch && is_taken_back(segment_.offset(), header.index);
    if (!is_ignorable(header.type)) position_ = position_behind(position_, block);
    segment_.accept(block);
    tail_.reset();
    if (!is_batch || taken_back) continue;
    return BatchView{&batch_, block.payload};
  }
}

Result<bool> JournalReader::pass_damage() {
  met_.reset();
  tail_.reset();
  judged_offset_ = 0;
  const bool of_header = sealed_ && segment_.header_known() && segment_.header_defect() &&
                         segment_.header().segment_id == segment_id_ + 1 && excused_id_ != segment_id_ + 1;
  if (of_header) {
    excused_id_ = segment_id_ + 1;
    return true;
  }
  position_known_ = false;
  begins_history_ = false;
  if (std::exchange(gap_, false)) return true;  // the block itself is sound
  if (!sealed_ && segment_.resume_behind()) return true;
  if (sealed_) ++segment_id_;  // the next one could not be opened
  sealed_ = true;
  auto files = list_journal(*disk_, directory_);
  if (!files) return std::unexpected(files.error());
  return !files->segments.empty() && files->segments.back() > segment_id_;
}

Result<bool> JournalReader::at_end(const BlockExamination& bad) {
  ScanContext context;
  context.durable_index = known_durable(hard_state_);
  context.begins_history = begins_history_;
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
  if (end.tail == TailClass::corrupt) {
    judged_offset_ = 0;  // asked again, it is damage again, and no end
    return fail(ErrorCode::corrupt, describe(*end.finding));
  }
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
    if (holds_block(segment)) return true;
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
