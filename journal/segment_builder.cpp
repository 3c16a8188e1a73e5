// SPDX-License-Identifier: Apache-2.0
#include "journal/segment_builder.hpp"

#include <cstring>

namespace lockstep {

Result<void> SegmentBuilder::start() {
  static_cast<void>(disk_.remove(path_));  // left by an attempt that did not get further
  auto file = disk_.open(path_, OpenMode::create_direct);
  if (!file) return std::unexpected(file.error());
  file_ = *file;
  AlignedBuffer sector(sizeof header_);
  std::memcpy(sector.data(), &header_, sizeof header_);
  last_checksum_ = header_.checksum;
  offset_ = sizeof header_;
  return disk_.write(file_, 0, sector.span());
}

Result<void> SegmentBuilder::add(BlockHeader header, std::span<const std::byte> payload) {
  header.cluster_id = header_.cluster_id;
  header.segment_id = header_.segment_id;
  header.nonce = header_.nonce;
  header.file_offset = offset_;
  header.block_no = ++blocks_;
  header.durable_block = blocks_ - 1;
  header.prev_block = last_checksum_;
  header.payload_digest = xxh3_128(payload);
  const std::size_t header_bytes = block_header_bytes(payload.size());
  AlignedBuffer block(header_bytes + round_up_to_block(payload.size()));
  const auto area = block.span().subspan(header_bytes);
  if (!payload.empty()) std::memcpy(area.data(), payload.data(), payload.size());
  pad_for_journal(area, payload.size());
  build_block(header, area.first(payload.size()), block.span());
  std::memcpy(&last_checksum_, block.data(), sizeof last_checksum_);
  if (header.type == BlockType::batch) {
    seal_.add_batch(batch_header_of(header), offset_);
    position_ = position_after(batch_header_of(header));
  }
  if (header.type == BlockType::truncate) {
    position_ = parse_truncate(payload).value_or(position_);
    seal_.go_back(position_);
  }
  const std::uint64_t at = offset_;
  offset_ += block_total_bytes(payload.size());
  return disk_.write(file_, at, block.span().first(block_total_bytes(payload.size())));
}

Result<void> SegmentBuilder::finish() {
  if (auto sealed = add(control_header(BlockType::seal, header_, position_), seal_.payload()); !sealed) return sealed;
  return disk_.sync(file_);
}

}  // namespace lockstep
