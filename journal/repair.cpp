// SPDX-License-Identifier: Apache-2.0
#include "journal/repair.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <optional>

#include "journal/damaged_header.hpp"
#include "journal/directory.hpp"
#include "journal/file_copy.hpp"
#include "journal/inspect.hpp"
#include "journal/recovery.hpp"
#include "journal/segment_builder.hpp"
#include "journal/segment_scan.hpp"

namespace lockstep {
namespace {

std::string path_of(const std::string& directory, std::uint64_t id) {
  return directory + "/" + segment_name(id);
}

/// The header a segment is written anew with.
Result<SegmentHeader> header_for(Disk& disk, const std::string& directory, std::uint64_t id, const HardState& state) {
  BlockStream segment(disk);
  const bool own = segment.open(path_of(directory, id)) && segment.header_known() &&
                   segment.header().segment_id == id && segment.header().cluster_id == state.cluster_id;
  if (own) return segment.header();
  if (const auto header = derived_segment_header(disk, directory, id, state, true)) return *header;
  return fail(ErrorCode::corrupt, fmt::format("nothing in {} tells what the header of {} was; restore {} from a backup "
                                              "or another replica",
                                              directory, segment_name(id), directory));
}

/// Makes the file that is ready under `temporary` the segment, and keeps a copy of the one it replaces.
Result<void> replace_segment(Disk& disk, const std::string& directory, std::uint64_t id, const std::string& temporary) {
  const auto files = list_journal(disk, directory);
  if (!files) return std::unexpected(files.error());
  if (std::ranges::binary_search(files->segments, id))
    if (auto kept = keep_bad_copy(disk, directory, id); !kept) return kept;
  if (auto renamed = disk.rename(temporary, path_of(directory, id)); !renamed) return renamed;
  return disk.sync_directory(directory);
}

/// The segment as it is, but for its header.
Result<void> write_header(Disk& disk, const std::string& directory, std::uint64_t id, const SegmentHeader& header) {
  const std::string name = segment_name(id) + ".tmp";
  if (auto copied = copy_file(disk, path_of(directory, id), directory, name); !copied) return copied;
  auto file = disk.open(directory + "/" + name, OpenMode::write_direct);
  if (!file) return std::unexpected(file.error());
  AlignedBuffer sector(sizeof header);
  std::memcpy(sector.data(), &header, sizeof header);
  auto result = disk.write(*file, 0, sector.span());
  if (result) result = disk.sync(*file);
  disk.close(*file);
  if (result) result = replace_segment(disk, directory, id, directory + "/" + name);
  if (!result) static_cast<void>(disk.remove(directory + "/" + name));
  return result;
}

class Filling {
 public:
  Filling(Disk& disk, const std::string& directory, const Hole& hole, std::span<const BatchView> batches)
      : disk_(disk), directory_(directory), hole_(hole), batches_(batches) {}
  Result<std::size_t> run();

 private:
  /// A sound block of the damaged segment that is worth keeping.
  struct Kept {
    std::uint64_t offset = 0;
    BlockHeader header;
    bool behind_hole = false;
  };
  Result<void> check_batches() const;
  Result<void> gather();
  Result<void> write_file(SegmentBuilder& file, std::size_t& filled);
  Result<void> add_kept(SegmentBuilder& file, const Kept& kept);
  Result<void> add_schema(SegmentBuilder& file);

  Disk& disk_;
  const std::string& directory_;
  const Hole& hole_;
  std::span<const BatchView> batches_;
  HardState state_;
  HistoryPosition before_;  ///< what the segment's first block follows from
  std::vector<Kept> kept_;
  std::uint64_t bytes_behind_ = 0;
};

Result<void> Filling::check_batches() const {
  HistoryPosition position = hole_.before;
  for (const BatchView& batch : batches_) {
    const BatchHeader& header = *batch.header;
    const auto refuse = [&](std::string_view why) {
      return fail(ErrorCode::diverged,
                  fmt::format("batch {} does not fill the hole behind batch {} of {}/{}: {}", header.index,
                              position.index, directory_, segment_name(hole_.segment_id), why));
    };
    if (header.index != position.index + 1) return refuse("its index does not follow");
    if (header.first_seq != position.seq + 1) return refuse("its sequence numbers do not follow");
    if (header.prev_chain != position.chain) return refuse("its chain does not follow");
    if (const auto defect = batch_defect(batch)) return refuse(*defect);
    position = position_after(header);
    if (hole_.chain && header.index > hole_.last_index) return refuse("the hole ends before it");
    if (hole_.chain && header.index == hole_.last_index && header.chain != *hole_.chain)
      return refuse("its chain differs from what follows the hole");
  }
  return {};
}

Result<void> Filling::gather() {
  before_ = hole_.before;
  BlockStream segment(disk_);
  if (!open_past_header(segment, disk_, directory_, hole_.segment_id, state_) || !segment.header_known()) return {};
  bool first = true;
  do {
    for (;;) {
      const BlockExamination block = segment.examine();
      if (auto error = unusable(segment, block, true)) return std::unexpected(std::move(*error));
      if (block.verdict != BlockVerdict::valid) break;
      const BlockHeader& header = *block.header;
      const HistoryPosition start = position_before(header);
      const bool behind = hole_.header == Hole::Header::sound && start.index > hole_.before.index;
      if (std::exchange(first, false) && !behind) before_ = start;
      if (header.type != BlockType::mark && header.type != BlockType::seal) {
        kept_.push_back({segment.offset(), header, behind});
        if (behind) bytes_behind_ += header.total_bytes;
      }
      segment.accept(block);
    }
  } while (segment.resume_behind());
  return {};
}

/// Batches explain themselves by the schema before them; another segment has it too.
Result<void> Filling::add_schema(SegmentBuilder& file) {
  const std::uint64_t wanted = !kept_.empty()      ? kept_.front().header.schema_id
                               : !batches_.empty() ? batches_.front().header->schema_id
                                                   : 0;
  const bool has_one = std::ranges::any_of(kept_, [](const Kept& k) { return k.header.type == BlockType::schema; });
  if (wanted == 0 || has_one) return {};
  auto files = list_journal(disk_, directory_);
  if (!files) return std::unexpected(files.error());
  for (const std::uint64_t id : files->segments) {
    BlockStream segment(disk_);
    if (!segment.open(path_of(directory_, id)) || !segment.header_known()) continue;
    const BlockExamination block = segment.examine();
    const bool found = block.verdict == BlockVerdict::valid && block.header->type == BlockType::schema &&
                       block.header->schema_id == wanted;
    if (!found || block.header->total_bytes + bytes_behind_ > file.room()) continue;
    BlockHeader header = control_header(BlockType::schema, segment.header(), before_);
    header.schema_id = wanted;
    return file.add(header, block.payload);
  }
  return {};
}

Result<void> Filling::add_kept(SegmentBuilder& file, const Kept& kept) {
  auto source = disk_.open(path_of(directory_, hole_.segment_id), OpenMode::read);
  if (!source) return std::unexpected(source.error());
  AlignedBuffer block(kept.header.total_bytes);
  const auto got = disk_.read(*source, kept.offset, block.span());
  disk_.close(*source);
  if (!got) return std::unexpected(got.error());
  const bool is_inline = (kept.header.flags & block_flag_inline) != 0;
  const auto payload = block.span().subspan(is_inline ? sizeof(BlockHeader) : kept.header.header_bytes);
  if (*got < block.size() || xxh3_128(payload.first(kept.header.payload_bytes)) != kept.header.payload_digest)
    return fail(ErrorCode::io,
                fmt::format("{} reads differently each time; check its disk", path_of(directory_, hole_.segment_id)));
  return file.add(kept.header, payload.first(kept.header.payload_bytes));
}

Result<void> Filling::write_file(SegmentBuilder& file, std::size_t& filled) {
  if (auto started = file.start(); !started) return started;
  if (auto added = add_schema(file); !added) return added;
  for (const Kept& kept : kept_)
    if (!kept.behind_hole)
      if (auto added = add_kept(file, kept); !added) return added;
  for (; filled < batches_.size(); ++filled) {
    const BatchView& batch = batches_[filled];
    if (block_total_bytes(batch.payload.size()) + bytes_behind_ > file.room()) break;
    if (auto added = file.add(batch_block(*batch.header), batch.payload); !added) return added;
  }
  for (const Kept& kept : kept_)
    if (kept.behind_hole)
      if (auto added = add_kept(file, kept); !added) return added;
  return file.finish();
}

Result<std::size_t> Filling::run() {
  if (auto checked = check_batches(); !checked) return std::unexpected(checked.error());
  const auto state = look_at_hard_state(disk_, directory_);
  if (!state) return std::unexpected(state.error());
  state_ = *state;
  const auto header = header_for(disk_, directory_, hole_.segment_id, state_);
  if (!header) return std::unexpected(header.error());
  if (hole_.header == Hole::Header::restored) {
    if (auto written = write_header(disk_, directory_, hole_.segment_id, *header); !written)
      return std::unexpected(written.error());
    return 0;
  }
  if (auto gathered = gather(); !gathered) return std::unexpected(gathered.error());

  const std::string temporary = path_of(directory_, hole_.segment_id) + ".tmp";
  std::size_t filled = 0;
  Result<void> result;
  {
    SegmentBuilder file(disk_, temporary, *header, before_);
    result = write_file(file, filled);
  }
  if (result) result = replace_segment(disk_, directory_, hole_.segment_id, temporary);
  if (result) return filled;
  static_cast<void>(disk_.remove(temporary));
  return std::unexpected(result.error());
}

std::string range_text(const Hole& hole) {
  return hole.chain ? fmt::format("batches {} to {}", hole.before.index + 1, hole.last_index)
                    : fmt::format("batches {} to {} at least", hole.before.index + 1, hole.last_index);
}

/// What a hole's repair did, in a line.
std::string done_text(const Hole& hole) {
  const std::string name = segment_name(hole.segment_id);
  return hole.header == Hole::Header::restored
             ? fmt::format(
                   "{}: its header is what it was again ({}); the damaged file is kept, with .bad behind its name",
                   name, hole.cause)
             : fmt::format(
                   "{}: written anew from its sound blocks ({}); the damaged file is kept, with .bad behind its name",
                   name, hole.cause);
}

/// Writing a segment anew ends it where its sound blocks end: not to be done over what only an operator gives up.
Result<bool> may_be_written(Disk& disk, const std::string& directory, std::span<const Hole> holes, const Hole& hole,
                            bool accept_tail) {
  if (hole.lacks_batches()) return false;
  if (hole.header != Hole::Header::derived) return true;
  const auto lacks = [&](const Hole& other) { return other.segment_id == hole.segment_id && other.lacks_batches(); };
  if (std::ranges::any_of(holes, lacks)) return false;
  if (accept_tail) return true;
  const auto info = inspect_journal(disk, directory, InspectDepth::blocks);
  if (!info) return std::unexpected(info.error());
  return std::ranges::none_of(info->findings, [&](const Finding& finding) {
    return finding.tail == TailClass::ambiguous && finding.file == path_of(directory, hole.segment_id);
  });
}

/// Which hole needs no other data, the first of them; holes.size() when none does.
Result<std::size_t> find_derivable(Disk& disk, const std::string& directory, std::span<const Hole> holes,
                                   bool accept_tail) {
  for (std::size_t i = 0; i < holes.size(); ++i) {
    const auto may = may_be_written(disk, directory, holes, holes[i], accept_tail);
    if (!may) return std::unexpected(may.error());
    if (*may) return i;
  }
  return holes.size();
}

}  // namespace

std::string describe(const Hole& hole) {
  return fmt::format("{}: {}: {}", segment_name(hole.segment_id),
                     hole.lacks_batches() ? range_text(hole) + " are missing" : "no batch is missing", hole.cause);
}

Result<std::size_t> fill_hole(Disk& disk, const std::string& directory, const Hole& hole,
                              std::span<const BatchView> batches) {
  return Filling(disk, directory, hole, batches).run();
}

Result<RepairReport> repair_journal(Disk& disk, const std::string& directory, bool accept_tail) {
  if (auto there = require_journal(disk, directory); !there) return std::unexpected(there.error());
  RepairReport report;
  {
    const auto lock = DirectoryLock::take(disk, directory);
    if (!lock) return std::unexpected(lock.error());
    for (std::optional<Hole> last;;) {
      auto holes = find_holes(disk, directory);
      if (!holes) return std::unexpected(holes.error());
      const auto derivable = find_derivable(disk, directory, *holes, accept_tail);
      if (!derivable) return std::unexpected(derivable.error());
      const Hole* next = *derivable < holes->size() ? &(*holes)[*derivable] : nullptr;
      const bool no_progress = next != nullptr && last && last->segment_id == next->segment_id &&
                               last->before == next->before && last->header == next->header;
      if (next == nullptr || no_progress) {
        report.left = std::move(*holes);
        break;
      }
      if (auto filled = fill_hole(disk, directory, *next, {}); !filled) return std::unexpected(filled.error());
      last = *next;
      report.done.push_back(done_text(*next));
    }
  }
  if (!report.left.empty() || !accept_tail) return report;
  const auto info = inspect_journal(disk, directory, InspectDepth::blocks);
  if (!info) return std::unexpected(info.error());
  // Without one there is nothing to give up, and all else is the next start's.
  if (std::ranges::find(info->findings, TailClass::ambiguous, &Finding::tail) == info->findings.end()) return report;
  std::vector<Finding> findings;
  const auto recovered = recover(disk, {.directory = directory, .create = false, .accept_tail = true}, &findings);
  if (!recovered) return std::unexpected(recovered.error());
  for (const Finding& finding : findings)
    report.done.push_back(
        finding.tail == TailClass::ambiguous
            ? fmt::format("{}; cut: the history ends at batch {}; the file is kept as it was with .bad behind its name",
                          describe(finding), recovered->position.index)
            : fmt::format("{}; cut, or left out, as a start does", describe(finding)));
  return report;
}

}  // namespace lockstep
