// SPDX-License-Identifier: Apache-2.0
#include "journal/segment_file.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "journal/directory.hpp"
#include "journal/file_copy.hpp"

namespace lockstep {

Result<FileId> make_segment(Disk& disk, const std::string& directory, SegmentHeader& header) {
  finish_segment_header(header);
  const std::string path = directory + "/" + segment_name(header.segment_id);
  const std::string temporary = path + ".tmp";
  auto file = disk.open(temporary, OpenMode::create_direct);
  if (!file) return file;
  AlignedBuffer sector(sizeof header);
  std::memcpy(sector.data(), &header, sizeof header);
  Result<void> result = disk.lock(*file);
  if (result) result = disk.zero_fill(*file, header.segment_bytes);
  if (result) result = disk.write(*file, 0, sector.span());
  if (result) result = disk.sync(*file);
  if (result) result = disk.rename(temporary, path);
  if (result) result = disk.sync_directory(directory);
  if (result) return file;
  disk.close(*file);
  static_cast<void>(disk.remove(temporary));
  return std::unexpected(result.error());
}

Result<void> keep_bad_copy(Disk& disk, const std::string& directory, std::uint64_t segment_id) {
  const std::string name = segment_name(segment_id);
  const std::string path = directory + "/" + name;
  const auto names = disk.list(directory);
  if (!names) return std::unexpected(names.error());
  std::string kept = name + ".bad";
  for (int copies = 1; std::ranges::find(*names, kept) != names->end();
       kept = fmt::format("{}.{}.bad", name, ++copies)) {
    const auto equal = same_content(disk, path, directory + "/" + kept);
    if (!equal) return std::unexpected(equal.error());
    if (*equal) return disk.sync_directory(directory);
  }
  // A crash must leave no part of a copy under the name of a whole one.
  const std::string temporary = name + ".bad.tmp";
  if (auto copied = copy_file(disk, path, directory, temporary); !copied) return copied;
  if (auto renamed = disk.rename(directory + "/" + temporary, directory + "/" + kept); !renamed) return renamed;
  return disk.sync_directory(directory);
}

void SealBuilder::start(const SegmentHeader& segment, const HistoryPosition& before) {
  summary_ = {};
  summary_.first_index = before.index + 1;
  summary_.last_index = before.index;
  summary_.last_seq = before.seq;
  summary_.last_time_ns = before.time_ns;
  summary_.last_chain = before.chain;
  stride_ = segment.segment_bytes / max_seal_entries;
  next_entry_at_ = 0;
}

void SealBuilder::add_batch(const BatchHeader& batch, std::uint64_t offset) {
  const HistoryPosition after = position_after(batch);
  ++summary_.batches;
  summary_.last_index = after.index;
  summary_.last_seq = after.seq;
  summary_.last_time_ns = after.time_ns;
  summary_.last_chain = after.chain;
  if (offset >= next_entry_at_ && summary_.entry_count < max_seal_entries) {
    entries_[summary_.entry_count++] = {batch.index, static_cast<std::uint32_t>(offset / disk_block_bytes), 0};
    next_entry_at_ = (offset / stride_ + 1) * stride_;
  }
  ++entries_[summary_.entry_count - 1].count;
}

void SealBuilder::go_back(const HistoryPosition& position) {
  summary_.last_index = position.index;
  summary_.last_seq = position.seq;
  summary_.last_time_ns = position.time_ns;
  summary_.last_chain = position.chain;
}

std::span<const std::byte> SealBuilder::payload() {
  std::memcpy(bytes_, &summary_, sizeof summary_);
  const std::size_t entry_bytes = summary_.entry_count * sizeof(SealEntry);
  std::memcpy(bytes_ + sizeof summary_, entries_, entry_bytes);
  return {bytes_, sizeof summary_ + entry_bytes};
}

BlockHeader control_header(BlockType type, const SegmentHeader& segment, const HistoryPosition& position) {
  BlockHeader header;
  header.type = type;
  header.cluster_id = segment.cluster_id;
  header.segment_id = segment.segment_id;
  header.nonce = segment.nonce;
  header.index = position.index;
  header.first_seq = position.seq + 1;
  header.first_time_ns = position.time_ns;
  header.last_time_ns = position.time_ns;
  header.prev_chain = position.chain;
  header.chain = position.chain;
  return header;
}

}  // namespace lockstep
