// SPDX-License-Identifier: Apache-2.0
#include "journal/inspect.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <optional>
#include <utility>

#include "journal/damaged_header.hpp"
#include "journal/directory.hpp"
#include "journal/segment_scan.hpp"
#include "journal/snapshots.hpp"
#include "journal/spares.hpp"

namespace lockstep {
namespace {

class Inspection {
 public:
  Inspection(Disk& disk, const std::string& directory, InspectDepth depth)
      : disk_(disk), directory_(directory), depth_(depth) {}

  Result<JournalInfo> run();

 private:
  [[nodiscard]] std::string path_of(std::uint64_t id) const { return directory_ + "/" + segment_name(id); }
  [[nodiscard]] std::uint64_t last_used_id() const {
    return used_ == 0 ? info_.hard_state.oldest_segment_id - 1 : ids_[used_ - 1];
  }
  Result<void> look_at_hash_log();
  void judge_hash_log();
  Result<void> list_segments();
  Result<void> scan(std::size_t at);
  Result<void> scan_used(BlockStream& segment, SegmentInfo& info, std::size_t at);
  Result<void> scan_behind_damage(BlockStream& segment, SegmentInfo& info, ScanContext context);
  void add(SegmentInfo& info, const SegmentScan& scan);
  void check_flags();
  Result<void> check_snapshots();
  void damaged(const std::string& path, std::string evidence) {
    info_.findings.push_back({path, 0, 0, info_.last.index + 1, TailClass::corrupt, std::move(evidence)});
  }

  /// What comes is not held against what was before it.
  void lose_position() {
    before_.reset();
    undamaged_ = false;
    unsealed_ = false;
  }

  Disk& disk_;
  const std::string& directory_;
  InspectDepth depth_;
  JournalInfo info_;
  std::vector<std::uint64_t> ids_;
  std::size_t used_ = 0;  ///< of ids_, up to the last with blocks
  std::optional<HistoryPosition> before_;
  bool undamaged_ = true;
  bool unsealed_ = false;  ///< the last used segment ends without a SEAL
  std::vector<SpareFlaw> flaws_;
  bool has_skips_ = false;
  Known known_;
  std::vector<Finding> of_hash_log_;
  std::uint64_t recorded_index_ = 0;  ///< the last batch the hash log has a root of
  Trail trail_;
};

/// Before the segments: what a live node records meanwhile may be of batches that were not there when those were read.
Result<void> Inspection::look_at_hash_log() {
  auto known = look_at_known(disk_, directory_, info_.hard_state);
  if (!known) return std::unexpected(known.error());
  known_ = *known;
  const auto there = has_hash_log(disk_, directory_);
  if (!there) return std::unexpected(there.error());
  if (!*there) return {};
  const auto add = [&](TailClass tail, const std::string& evidence) {
    of_hash_log_.push_back({directory_ + "/" + hash_log_name, 0, 0, recorded_index_, tail, evidence});
  };
  const auto content = read_hash_log(disk_, directory_);
  if (!content) {
    if (content.error().code == ErrorCode::io) return std::unexpected(content.error());
    add(content.error().code == ErrorCode::incomplete ? TailClass::torn : TailClass::corrupt, content.error().message);
    return {};
  }
  if (!content->entries.empty()) recorded_index_ = content->entries.back().index;
  const HardState& state = info_.hard_state;
  const auto own = check_owner(content->header, directory_ + "/" + hash_log_name, state.cluster_id, state.replica_id);
  if (!own) add(TailClass::corrupt, own.error().message);
  if (content->torn_bytes != 0)
    add(TailClass::torn, describe_torn(*content, directory_) + "; the next start derives it again");
  return {};
}

/// What it holds beyond the end was never known to be durable: else the history's end is damage.
void Inspection::judge_hash_log() {
  const auto damaged = [](const Finding& finding) { return finding.tail == TailClass::corrupt; };
  if (recorded_index_ > info_.last.index && std::ranges::none_of(info_.findings, damaged))
    of_hash_log_.push_back({directory_ + "/" + hash_log_name, 0, 0, info_.last.index + 1, TailClass::torn,
                            fmt::format("it has roots up to batch {}, and the history ends at {}; they do not say that "
                                        "those batches were durable, so the next start cuts them",
                                        recorded_index_, info_.last.index)});
  std::ranges::copy(of_hash_log_, std::back_inserter(info_.findings));
}

Result<void> Inspection::list_segments() {
  auto files = list_journal(disk_, directory_);
  if (!files) return std::unexpected(files.error());
  ids_ = std::move(files->segments);
  // A live node may have pruned since the first look; what it made since is looked at next time.
  auto now = look_at_hard_state(disk_, directory_);
  if (!now) return std::unexpected(now.error());
  info_.hard_state.oldest_segment_id = now->oldest_segment_id;
  std::erase_if(ids_, [&](std::uint64_t id) { return id < info_.hard_state.oldest_segment_id; });
  const auto used = count_used(disk_, directory_, ids_, known_.state);
  if (!used) return std::unexpected(used.error());
  used_ = *used;
  const std::uint64_t last_used = last_used_id();
  for (std::uint64_t id = info_.hard_state.oldest_segment_id;
       id <= std::max(last_used, info_.hard_state.newest_segment_id); ++id) {
    if (std::ranges::binary_search(ids_, id)) continue;
    const SpareFlaw missing = missing_spare(directory_, id, info_.hard_state);
    if (id > last_used)
      flaws_.push_back(missing);
    else
      damaged(missing.file, missing.cause);
  }
  return {};
}

void Inspection::add(SegmentInfo& info, const SegmentScan& scan) {
  info.used_bytes = scan.end_offset;
  info.blocks += scan.blocks;
  info.batches += scan.batches;
  info.records += scan.records;
  info.payload_bytes += scan.payload_bytes;
  if (info.first_index == 0) info.first_index = scan.first_index;
  if (scan.batches > 0) info.last_index = scan.position.index;
  info.sealed = scan.sealed;
  info_.schema_ids.insert(info_.schema_ids.end(), scan.schema_ids.begin(), scan.schema_ids.end());
  has_skips_ = has_skips_ || scan.has_skips;
  if (scan.finding) info_.findings.push_back(*scan.finding);
  if (undamaged_) info_.last = scan.position;
  if (scan.finding) undamaged_ = false;
}

Result<void> Inspection::scan_behind_damage(BlockStream& segment, SegmentInfo& info, ScanContext context) {
  context.before.reset();
  context.from_middle = true;
  while (!info.sealed && segment.resume_behind()) {
    auto scan = scan_segment(segment, context);
    if (!scan) return std::unexpected(scan.error());
    add(info, *scan);
    if (scan->tail == TailClass::clean) break;
  }
  return {};
}

Result<void> Inspection::scan_used(BlockStream& segment, SegmentInfo& info, std::size_t at) {
  ScanContext context;
  context.before = before_;
  context.durable_index = known_durable(known_.state);
  context.durable_source = known_.durable_source;
  context.later_segment_has_blocks = at + 1 < used_;
  context.anchors = known_.anchors;
  if ((info_.hard_state.flags & hard_state_has_truncates) != 0) context.trail = &trail_;
  context.check_records = depth_ != InspectDepth::blocks;
  context.begins_history = at == 0 && info_.hard_state.oldest_segment_id > 1;
  auto first = scan_segment(segment, context);
  if (!first) return std::unexpected(first.error());
  if (info_.segments.empty()) info_.first_index = first->before.index + 1, info_.first_seq = first->before.seq + 1;
  add(info, *first);
  before_ = first->position;
  unsealed_ = !first->sealed && (first->tail == TailClass::clean || first->tail == TailClass::torn);
  if (first->tail != TailClass::corrupt) return {};
  before_.reset();
  return scan_behind_damage(segment, info, context);
}

Result<void> Inspection::scan(std::size_t at) {
  BlockStream segment(disk_);
  if (auto opened = open_past_header(segment, disk_, directory_, ids_[at], info_.hard_state); !opened) {
    // A live node may have pruned it meanwhile.
    const auto now = look_at_hard_state(disk_, directory_);
    return now && ids_[at] < now->oldest_segment_id ? Result<void>{} : opened;
  }
  const SegmentHeader& header = segment.header();
  SegmentInfo info;
  info.file = segment_name(ids_[at]);
  info.segment_id = ids_[at];
  info.file_bytes = segment.file_bytes();
  info.incarnation = header.incarnation;
  info.spare = at >= used_;
  const auto& defect = segment.header_defect();
  if (auto error = foreign(segment, info_.hard_state)) return std::unexpected(std::move(*error));
  if (at > 0 && ids_[at] != ids_[at - 1] + 1 && !info.spare) lose_position();
  if (info.spare) {
    if (const auto flaw = flaw_of_spare(segment, ids_[at], info_.hard_state)) flaws_.push_back(*flaw);
  } else if (!segment.header_known()) {
    damaged(segment.path(), std::string(defect->cause) + "; nothing in it can be read");
    lose_position();
  } else if (header.segment_id != ids_[at]) {
    damaged(segment.path(), fmt::format("its header says segment {}", header.segment_id));
    lose_position();
  } else {
    if (defect)
      damaged(segment.path(), fmt::format("{}; 'lockstep journal repair {}' writes it anew, and its blocks are judged "
                                          "by themselves",
                                          defect->cause, directory_));
    if (auto scanned = scan_used(segment, info, at); !scanned) return scanned;
  }
  info_.segments.push_back(std::move(info));
  return {};
}

void Inspection::check_flags() {
  if (!has_skips_ || (info_.hard_state.flags & hard_state_has_skips) != 0) return;
  info_.findings.push_back({fmt::format("{}/{}", directory_, hard_state_name), 0, 0, 0, TailClass::torn,
                            "it knows of no skip, and the journal holds one: it is older than the journal; the next "
                            "start mends that"});
}

/// Whether a start has a state to go on from.
Result<void> Inspection::check_snapshots() {
  const auto choice = choose_snapshot(disk_, directory_);
  if (choice) return {};
  if (choice.error().code != ErrorCode::corrupt) return std::unexpected(choice.error());
  damaged(directory_, choice.error().message);
  return {};
}

Result<JournalInfo> Inspection::run() {
  auto hard_state = look_at_hard_state(disk_, directory_);
  if (!hard_state) return std::unexpected(hard_state.error());
  info_.hard_state = *hard_state;
  if (auto looked = look_at_hash_log(); !looked) return std::unexpected(looked.error());
  if (auto listed = list_segments(); !listed) return std::unexpected(listed.error());
  if (info_.hard_state.oldest_segment_id == 1) before_ = HistoryPosition{};
  trail_.start({});
  for (std::size_t i = 0; i < ids_.size(); ++i)
    if (auto scanned = scan(i); !scanned) return std::unexpected(scanned.error());
  std::ranges::move(judge_spares(std::move(flaws_), known_.state, {last_used_id(), info_.last, unsealed_}),
                    std::back_inserter(info_.findings));
  if (std::ranges::find(info_.findings, TailClass::corrupt, &Finding::tail) == info_.findings.end())
    std::ranges::copy(contradictions(known_.anchors, *hard_state, info_.first_index, info_.last, directory_),
                      std::back_inserter(info_.findings));
  judge_hash_log();
  check_flags();
  if (depth_ == InspectDepth::state && info_.sound())
    if (auto checked = check_snapshots(); !checked) return std::unexpected(checked.error());
  std::ranges::sort(info_.schema_ids);
  const auto repeated = std::ranges::unique(info_.schema_ids);
  info_.schema_ids.erase(repeated.begin(), repeated.end());
  return std::move(info_);
}

}  // namespace

bool JournalInfo::sound() const {
  return std::ranges::all_of(findings, [](const Finding& finding) { return finding.tail == TailClass::torn; });
}

Result<JournalInfo> inspect_journal(Disk& disk, const std::string& directory, InspectDepth depth) {
  return Inspection(disk, directory, depth).run();
}

}  // namespace lockstep
