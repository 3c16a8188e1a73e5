// SPDX-License-Identifier: Apache-2.0
#include "journal/block_stream.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/assert.hpp"
#include "journal/damaged_header.hpp"

namespace lockstep {
namespace {

/// Stands for bytes that could not be read: neither zeros nor padding nor a block.
constexpr int unreadable_fill = 0x5A;

}  // namespace

BlockStream::BlockStream(BlockStream&& other) noexcept : disk_(other.disk_) {
  *this = std::move(other);
}

BlockStream& BlockStream::operator=(BlockStream&& other) noexcept {
  if (this == &other) return *this;
  close();
  disk_ = other.disk_;
  file_ = std::exchange(other.file_, FileId::none);
  path_ = std::move(other.path_);
  file_bytes_ = other.file_bytes_;
  header_ = other.header_;
  header_defect_ = other.header_defect_;
  known_ = other.known_;
  buffer_ = std::move(other.buffer_);
  buffered_from_ = other.buffered_from_;
  buffered_bytes_ = std::exchange(other.buffered_bytes_, 0);
  offset_ = other.offset_;
  next_block_no_ = other.next_block_no_;
  last_checksum_ = other.last_checksum_;
  return *this;
}

Result<void> BlockStream::open(const std::string& path) {
  close();
  auto file = disk_->open(path, OpenMode::read);
  if (!file) return std::unexpected(file.error());
  file_ = *file;
  path_ = path;
  auto bytes = disk_->size(file_);
  if (!bytes) return std::unexpected(bytes.error());
  file_bytes_ = *bytes;
  refresh();
  read_header();
  offset_ = sizeof header_;
  next_block_no_ = 1;
  last_checksum_ = header_.checksum;
  return {};
}

void BlockStream::read_header() {
  // Nothing is taken for a block of a segment whose header is not known, and no length is taken from it.
  header_ = {};
  header_.max_batch_bytes = batch_bytes_limit;
  known_ = Known::no;
  SegmentHeader found;
  const auto bytes = window(0, sizeof found + sizeof(BlockHeader), 0);
  if (bytes.size() < sizeof found) {
    header_defect_ = SegmentHeaderDefect{false, "it is shorter than its header"};
    return;
  }
  std::memcpy(&found, bytes.data(), sizeof found);
  header_defect_ = segment_header_defect(found);
  if (!header_defect_ || header_defect_->incompatible) {
    header_ = found;
    if (!header_defect_) known_ = Known::sound;
    return;
  }
  Digest stated;
  if (bytes.size() >= sizeof found + sizeof(BlockHeader))
    std::memcpy(&stated, bytes.data() + sizeof found + offsetof(BlockHeader, prev_block), sizeof stated);
  if (const auto restored = restored_segment_header(found, stated)) {
    header_ = *restored;
    known_ = Known::restored;
  }
}

void BlockStream::assume(const SegmentHeader& header) {
  header_ = header;
  known_ = Known::assumed;
  offset_ = sizeof header_;
  next_block_no_ = 1;
  last_checksum_ = header_.checksum;
  const auto image = window(offset_, block_header_bytes(header_.max_batch_bytes));
  if (const BlockHeader* first = find_block_header(image, offset_, header_)) last_checksum_ = first->prev_block;
}

std::optional<std::uint64_t> BlockStream::nonce_of_blocks(std::uint64_t segment_id, const ClusterId& cluster_id) {
  SegmentHeader any;
  any.segment_id = segment_id;
  any.cluster_id = cluster_id;
  any.segment_bytes = max_segment_bytes;
  any.max_batch_bytes = batch_bytes_limit;
  for (std::uint64_t at = sizeof(SegmentHeader);; at += disk_block_bytes) {
    const auto image = window(at, block_header_bytes(batch_bytes_limit));
    if (image.size() < sizeof(BlockHeader)) return std::nullopt;
    std::memcpy(&any.nonce, image.data() + offsetof(BlockHeader, nonce), sizeof any.nonce);
    if (find_block_header(image, at, any) != nullptr) return any.nonce;
  }
}

void BlockStream::close() {
  if (file_ != FileId::none) disk_->close(std::exchange(file_, FileId::none));
}

void BlockStream::refresh() {
  buffered_bytes_ = 0;
}

BlockExamination BlockStream::examine() {
  std::size_t wanted = disk_block_bytes;
  BlockExamination result;
  for (;;) {
    const auto image = window(offset_, wanted);
    result = examine_block(image, offset_, header_);
    if (result.verdict != BlockVerdict::incomplete || image.size() < wanted) break;
    wanted = result.wanted_bytes;
  }
  if (result.verdict == BlockVerdict::incomplete) {
    result.verdict = BlockVerdict::garbage;
    result.bad_offset = std::max(offset_, file_bytes_);
    result.cause = "the file ends within it";
  }
  if (result.verdict != BlockVerdict::valid) return result;
  if (result.header->block_no == next_block_no_ && result.header->prev_block == last_checksum_) return result;
  result.verdict = BlockVerdict::garbage;
  result.bad_offset = offset_;
  result.cause = "the block does not follow from the block before";
  return result;
}

void BlockStream::accept(const BlockExamination& block) {
  LOCKSTEP_ASSERT(block.verdict == BlockVerdict::valid, "only a valid block is passed");
  last_checksum_ = block.header->checksum;
  next_block_no_ = block.header->block_no + 1;
  offset_ += block.header->total_bytes;
}

BlockStream::Remainder BlockStream::look_behind() {
  Remainder result;
  const std::size_t header_bytes = block_header_bytes(header_.max_batch_bytes);
  for (std::uint64_t at = offset_;; at += disk_block_bytes) {
    const auto image = window(at, header_bytes);
    if (image.empty()) return result;
    result.blank = result.blank && all_zero(image.first(std::min(image.size(), disk_block_bytes)));
    const BlockHeader* found = find_block_header(image, at, header_);
    if (found == nullptr) continue;
    result.highest_block = std::max(result.highest_block, found->block_no);
    result.highest_durable = std::max(result.highest_durable, found->durable_block);
    result.highest_index = std::max(result.highest_index, found->index);
  }
}

bool BlockStream::resume_behind() {
  const std::size_t header_bytes = block_header_bytes(header_.max_batch_bytes);
  for (std::uint64_t at = offset_ + disk_block_bytes;; at += disk_block_bytes) {
    const auto image = window(at, header_bytes);
    if (image.empty()) return false;
    const BlockHeader* found = find_block_header(image, at, header_);
    if (found == nullptr) continue;
    offset_ = at;
    next_block_no_ = found->block_no;
    last_checksum_ = found->prev_block;
    return true;
  }
}

std::span<const std::byte> BlockStream::window(std::uint64_t offset, std::size_t bytes, std::size_t ahead) {
  const bool held = offset >= buffered_from_ && offset + bytes <= buffered_from_ + buffered_bytes_;
  if (!held) {
    const std::uint64_t rest = file_bytes_ > offset ? file_bytes_ - offset : 0;
    refill(offset, round_up_to_block(std::max<std::size_t>(bytes, std::min<std::uint64_t>(bytes + ahead, rest))));
  }
  const std::size_t start = static_cast<std::size_t>(offset - buffered_from_);
  return buffer_.span().first(buffered_bytes_).subspan(start, std::min(bytes, buffered_bytes_ - start));
}

void BlockStream::refill(std::uint64_t offset, std::size_t needed) {
  std::size_t kept = 0;
  if (offset >= buffered_from_ && offset < buffered_from_ + buffered_bytes_)
    kept = static_cast<std::size_t>(buffered_from_ + buffered_bytes_ - offset);
  if (buffer_.size() < needed) {
    AlignedBuffer grown(needed);
    if (kept > 0) std::memcpy(grown.data(), buffer_.data() + (offset - buffered_from_), kept);
    buffer_ = std::move(grown);
  } else if (kept > 0) {
    std::memmove(buffer_.data(), buffer_.data() + (offset - buffered_from_), kept);
  }
  buffered_from_ = offset;
  const auto into = buffer_.span().first(std::max(needed, kept)).subspan(kept);
  const auto got = disk_->read(file_, offset + kept, into);
  buffered_bytes_ = kept + (got ? *got : read_damaged(offset + kept, into));
}

std::size_t BlockStream::read_damaged(std::uint64_t offset, std::span<std::byte> into) {
  std::size_t done = 0;
  while (done < into.size()) {
    const auto sector = into.subspan(done, std::min(disk_block_bytes, into.size() - done));
    const auto got = disk_->read(file_, offset + done, sector);
    if (!got) {
      std::memset(sector.data(), unreadable_fill, sector.size());
      done += sector.size();
      if (offset + done >= file_bytes_) break;
      continue;
    }
    done += *got;
    if (*got < sector.size()) break;
  }
  return done;
}

}  // namespace lockstep
