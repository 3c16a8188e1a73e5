// SPDX-License-Identifier: Apache-2.0
#include "journal/holes.hpp"

#include <algorithm>

#include "journal/damaged_header.hpp"
#include "journal/directory.hpp"
#include "journal/segment_scan.hpp"
#include "journal/spares.hpp"

namespace lockstep {
namespace {

class HoleSearch {
 public:
  /// `hard_state` as it is known, which the hash log may tell more of.
  HoleSearch(Disk& disk, const std::string& directory, const HardState& hard_state)
      : disk_(disk), directory_(directory), hard_state_(hard_state), segment_(disk) {}

  Result<std::vector<Hole>> run();

 private:
  [[nodiscard]] std::string path_of(std::uint64_t id) const { return directory_ + "/" + segment_name(id); }
  Result<void> check_origin(const std::vector<std::uint64_t>& ids);
  Result<void> search(std::uint64_t id, bool last);
  Result<void> walk(std::uint64_t id, bool last);
  /// Takes a sound block into the history, closing a hole before it; false when it does not belong there.
  bool take(std::uint64_t id, const BlockExamination& block);
  [[nodiscard]] bool acknowledged_from_here(const BlockExamination& bad);
  void open_hole(std::uint64_t id, std::string_view cause);
  void close_hole(const HistoryPosition& start);

  Disk& disk_;
  const std::string& directory_;
  HardState hard_state_;
  BlockStream segment_;
  std::optional<HistoryPosition> position_;  ///< nothing before the first block of a pruned journal
  bool sealed_ = true;                       ///< the last segment walked has its SEAL; true before the first
  std::optional<Hole> open_;
  std::vector<Hole> holes_;
};

void HoleSearch::open_hole(std::uint64_t id, std::string_view cause) {
  if (open_) return;
  open_ = Hole{id, position_.value_or(HistoryPosition{}), 0, std::nullopt, std::string(cause), Hole::Header::sound};
}

void HoleSearch::close_hole(const HistoryPosition& start) {
  open_->last_index = start.index;
  open_->chain = start.chain;
  holes_.push_back(*std::exchange(open_, std::nullopt));
}

bool HoleSearch::take(std::uint64_t id, const BlockExamination& block) {
  const BlockHeader& header = *block.header;
  if (is_ignorable(header.type)) return true;
  const HistoryPosition start = position_before(header);
  if (!position_ && !open_) position_ = start;
  if (position_) {
    const bool follows = !open_ && !continuity_defect(*position_, header);
    const bool behind =
        start.index > position_->index || (start.index == position_->index && start.chain == position_->chain && open_);
    if (!follows && !behind) return false;
    if (!follows) open_hole(id, "batches are missing before this block");
  }
  if (open_) close_hole(start);
  position_ = position_behind(start, block);
  return true;
}

bool HoleSearch::acknowledged_from_here(const BlockExamination& bad) {
  ScanContext context;
  context.durable_index = known_durable(hard_state_);
  context.begins_history = !position_;
  return judge_end(segment_, bad, position_.value_or(HistoryPosition{}), context).tail == TailClass::corrupt;
}

Result<void> HoleSearch::walk(std::uint64_t id, bool last) {
  sealed_ = false;
  for (;;) {
    BlockExamination block = segment_.examine();
    if (auto error = unusable(segment_, block, (hard_state_.flags & hard_state_has_truncates) != 0))
      return std::unexpected(std::move(*error));
    if (block.verdict == BlockVerdict::valid) {
      if (take(id, block)) {
        const bool sealed = block.header->type == BlockType::seal;
        segment_.accept(block);
        sealed_ = sealed;
        if (sealed) return {};
        continue;
      }
      block.cause = "the block does not belong here";
    }
    const bool is_tail = last && !open_ && !acknowledged_from_here(block);
    if (is_tail) return {};
    open_hole(id, block.cause);
    if (!segment_.resume_behind()) return {};
  }
}

Result<void> HoleSearch::search(std::uint64_t id, bool last) {
  if (!open_past_header(segment_, disk_, directory_, id, hard_state_)) {
    open_hole(id, "the segment is missing");
    return {};
  }
  const SegmentHeader& header = segment_.header();
  if (const auto& defect = segment_.header_defect()) {
    if (!segment_.header_known()) {
      open_hole(id, defect->cause);
      return {};
    }
    const HistoryPosition at = position_.value_or(HistoryPosition{});
    holes_.push_back({id, at, at.index, at.chain, std::string(defect->cause),
                      segment_.header_restored() ? Hole::Header::restored : Hole::Header::derived});
  }
  if (header.segment_id != id) {
    open_hole(id, "its header names another segment");
    return {};
  }
  return walk(id, last);
}

Result<void> HoleSearch::check_origin(const std::vector<std::uint64_t>& ids) {
  for (const std::uint64_t id : ids) {
    if (auto opened = segment_.open(path_of(id)); !opened) return opened;
    if (auto error = foreign(segment_, hard_state_)) return std::unexpected(std::move(*error));
  }
  return {};
}

Result<std::vector<Hole>> HoleSearch::run() {
  auto files = list_journal(disk_, directory_);
  if (!files) return std::unexpected(files.error());
  std::vector<std::uint64_t>& ids = files->segments;
  std::erase_if(ids, [&](std::uint64_t id) { return id < hard_state_.oldest_segment_id; });
  if (hard_state_.oldest_segment_id == 1) position_ = HistoryPosition{};
  if (auto checked = check_origin(ids); !checked) return std::unexpected(checked.error());
  const auto used = count_used(disk_, directory_, ids, hard_state_);
  if (!used) return std::unexpected(used.error());
  const std::uint64_t last_used = *used == 0 ? hard_state_.oldest_segment_id - 1 : ids[*used - 1];
  for (std::uint64_t id = hard_state_.oldest_segment_id; id <= last_used; ++id)
    if (auto searched = search(id, id == last_used); !searched) return std::unexpected(searched.error());
  // What is gone behind a SEAL may have been used.
  const std::uint64_t next = last_used + 1;
  if (sealed_ && next <= hard_state_.newest_segment_id && !std::ranges::binary_search(ids, next))
    open_hole(next, "the segment is missing");
  if (sealed_ && known_durable(hard_state_) > position_.value_or(HistoryPosition{}).index)
    open_hole(next, "nothing is left of its blocks");
  if (open_) {
    const std::uint64_t behind = segment_.look_behind().highest_index;
    open_->last_index = std::max({known_durable(hard_state_), behind, open_->before.index + 1});
    holes_.push_back(*open_);
  }
  return std::move(holes_);
}

}  // namespace

Result<std::vector<Hole>> find_holes(Disk& disk, const std::string& directory) {
  const auto hard_state = look_at_hard_state(disk, directory);
  if (!hard_state) return std::unexpected(hard_state.error());
  const auto known = look_at_known(disk, directory, *hard_state);
  if (!known) return std::unexpected(known.error());
  return HoleSearch(disk, directory, known->state).run();
}

}  // namespace lockstep
