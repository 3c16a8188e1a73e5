// SPDX-License-Identifier: Apache-2.0
#include "journal/repair.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <optional>

#include "journal/directory.hpp"
#include "journal/recovery.hpp"
#include "journal/segment_builder.hpp"
#include "journal/segment_scan.hpp"

namespace lockstep {
namespace {

std::string path_of(const std::string& directory, std::uint64_t id) {
  return directory + "/" + segment_name(id);
}

/// A segment's header, when its file has a sound one.
std::optional<SegmentHeader> sound_header(Disk& disk, const std::string& directory, std::uint64_t id,
                                          const HardState& state) {
  BlockStream segment(disk);
  if (!segment.open(path_of(directory, id)) || segment.header_defect()) return std::nullopt;
  const SegmentHeader& header = segment.header();
  const bool ours = header.segment_id == id && header.cluster_id == state.cluster_id;
  return ours ? std::optional(header) : std::nullopt;
}

/// The header of a segment that has lost its own, from those beside it.
Result<SegmentHeader> header_for(Disk& disk, const std::string& directory, std::uint64_t id, const HardState& state) {
  if (const auto own = sound_header(disk, directory, id, state)) return *own;
  const auto previous = sound_header(disk, directory, id - 1, state);
  const auto next = sound_header(disk, directory, id + 1, state);
  if (!previous && !next)
    return fail(ErrorCode::corrupt, fmt::format("{} and the segments beside it have lost their headers; restore {} "
                                                "from a backup or another replica",
                                                segment_name(id), directory));
  SegmentHeader header = previous ? *previous : *next;
  header.segment_id = id;
  header.prev_nonce = previous ? previous->nonce : 0;
  header.nonce = next ? next->prev_nonce : xxh3_64(object_bytes(header));
  finish_segment_header(header);
  return header;
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
  if (!segment.open(path_of(directory_, hole_.segment_id)) || segment.header_defect()) return {};
  bool first = true;
  do {
    for (;;) {
      const BlockExamination block = segment.examine();
      if (auto error = unusable(segment, block, true)) return std::unexpected(std::move(*error));
      if (block.verdict != BlockVerdict::valid) break;
      const BlockHeader& header = *block.header;
      const HistoryPosition start = position_before(header);
      const bool behind = start.index > hole_.before.index;
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
    if (!segment.open(path_of(directory_, id)) || segment.header_defect()) continue;
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
  const auto header = header_for(disk_, directory_, hole_.segment_id, *state);
  if (!header) return std::unexpected(header.error());
  if (auto gathered = gather(); !gathered) return std::unexpected(gathered.error());

  const std::string path = path_of(directory_, hole_.segment_id);
  const std::string temporary = path + ".tmp";
  std::size_t filled = 0;
  Result<void> result;
  {
    SegmentBuilder file(disk_, temporary, *header, before_);
    result = write_file(file, filled);
  }
  const auto files = list_journal(disk_, directory_);
  if (result && !files) result = std::unexpected(files.error());
  if (result && std::ranges::binary_search(files->segments, hole_.segment_id))
    result = keep_bad_copy(disk_, directory_, hole_.segment_id);
  if (result) result = disk_.rename(temporary, path);
  if (result) result = disk_.sync_directory(directory_);
  if (!result) return std::unexpected(result.error());
  return filled;
}

std::string range_text(const Hole& hole) {
  return hole.chain ? fmt::format("batches {} to {}", hole.before.index + 1, hole.last_index)
                    : fmt::format("batches {} to {} at least", hole.before.index + 1, hole.last_index);
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
      const auto derivable = std::ranges::find_if(*holes, [](const Hole& hole) { return !hole.lacks_batches(); });
      const bool no_progress = derivable != holes->end() && last && last->segment_id == derivable->segment_id &&
                               last->before == derivable->before;
      if (derivable == holes->end() || no_progress) {
        report.left = std::move(*holes);
        break;
      }
      if (auto filled = fill_hole(disk, directory, *derivable, {}); !filled) return std::unexpected(filled.error());
      last = *derivable;
      report.done.push_back(
          fmt::format("{}: written anew from its sound blocks ({}); the damaged file is kept as {}.bad",
                      segment_name(derivable->segment_id), derivable->cause, segment_name(derivable->segment_id)));
    }
  }
  if (!report.left.empty() || !accept_tail) return report;
  std::vector<Finding> findings;
  const auto recovered = recover(disk, {.directory = directory, .create = false, .accept_tail = true}, &findings);
  if (!recovered) return std::unexpected(recovered.error());
  for (const Finding& finding : findings)
    report.done.push_back(fmt::format(
        "{}; cut: the history ends at batch {}{}", describe(finding), recovered->position.index,
        finding.tail == TailClass::ambiguous ? "; the file is kept as it was with .bad behind its name" : ""));
  return report;
}

}  // namespace lockstep
