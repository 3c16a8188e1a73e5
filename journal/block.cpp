// SPDX-License-Identifier: Apache-2.0
#include "journal/block.hpp"

#include <algorithm>
#include <cstring>

#include "base/assert.hpp"

namespace lockstep {
namespace {

constexpr std::size_t checksum_bytes = sizeof(Digest);
constexpr std::size_t device_piece_bytes = 512;

Digest segment_checksum(const SegmentHeader& header) {
  return xxh3_128(std::as_bytes(std::span(&header, 1)).subspan(checksum_bytes));
}

std::uint32_t sector_hash(std::span<const std::byte> sector) {
  return static_cast<std::uint32_t>(xxh3_64(sector));
}

/// A sector that a crash left behind: some piece of it was never written.
bool has_zero_piece(std::span<const std::byte> sector) {
  for (std::size_t at = 0; at + device_piece_bytes <= sector.size(); at += device_piece_bytes)
    if (all_zero(sector.subspan(at, device_piece_bytes))) return true;
  return false;
}

bool all_equal(std::span<const std::byte> bytes, std::byte value) {
  if (bytes.empty()) return true;
  return bytes[0] == value && std::memcmp(bytes.data(), bytes.data() + 1, bytes.size() - 1) == 0;
}

bool is_padding(std::span<const std::byte> bytes) {
  return all_equal(bytes, journal_padding);
}

bool known_type(BlockType type) {
  const auto value = static_cast<std::uint8_t>(type);
  return (value >= static_cast<std::uint8_t>(BlockType::batch) &&
          value <= static_cast<std::uint8_t>(BlockType::schema)) ||
         (value & ignorable_block_bit) != 0;
}

bool plausible_header_bytes(std::uint32_t bytes, const SegmentHeader& segment) {
  return bytes >= disk_block_bytes && bytes % disk_block_bytes == 0 &&
         bytes <= block_header_bytes(segment.max_batch_bytes);
}

BlockExamination refuse(BlockVerdict verdict, std::uint64_t bad_offset, std::string_view cause) {
  BlockExamination result;
  result.verdict = verdict;
  result.bad_offset = bad_offset;
  result.cause = cause;
  return result;
}

BlockExamination ask_for(std::size_t bytes) {
  BlockExamination result;
  result.verdict = BlockVerdict::incomplete;
  result.wanted_bytes = bytes;
  return result;
}

BlockExamination refuse_header_bytes(std::span<const std::byte> header, std::uint64_t offset) {
  for (std::size_t at = 0; at < header.size(); at += disk_block_bytes)
    if (has_zero_piece(header.subspan(at, disk_block_bytes)))
      return refuse(BlockVerdict::old_content, offset + at, "a piece of the block header was never written");
  return refuse(BlockVerdict::garbage, offset, "the block header's checksum differs");
}

/// Lengths of an intact header that cannot be true: a writer's bug or a forged checksum, never a reason to overrun.
bool lengths_fit(const BlockHeader& header, std::uint64_t offset, const SegmentHeader& segment) {
  const bool is_inline = (header.flags & block_flag_inline) != 0;
  if (header.payload_bytes > batch_bytes_limit || offset + header.total_bytes > segment.segment_bytes) return false;
  return is_inline == (header.payload_bytes <= inline_payload_bytes) &&
         header.header_bytes == block_header_bytes(header.payload_bytes) &&
         header.total_bytes == block_total_bytes(header.payload_bytes);
}

/// Examines the header alone; `valid` means that the payload may be looked at.
BlockExamination examine_header(std::span<const std::byte> image, std::uint64_t offset, const SegmentHeader& segment) {
  if (image.size() < disk_block_bytes) return ask_for(disk_block_bytes);
  const auto* header = reinterpret_cast<const BlockHeader*>(image.data());
  if (header->magic != block_magic || !plausible_header_bytes(header->header_bytes, segment))
    return refuse_header_bytes(image.first(disk_block_bytes), offset);
  if (image.size() < header->header_bytes) return ask_for(header->header_bytes);
  const auto bytes = image.first(header->header_bytes);
  if (header->checksum != xxh3_128(bytes.subspan(checksum_bytes))) return refuse_header_bytes(bytes, offset);
  if (header->version != journal_version || header->hash_algorithm != hash_xxh3 || !known_type(header->type) ||
      (header->flags & ~block_flag_inline) != 0 || header->zero0 != 0 ||
      !all_zero(std::as_bytes(std::span(header->zero))))
    return refuse(BlockVerdict::newer, offset, "the block is of a version, type or flag this program does not know");
  if (header->nonce != segment.nonce || header->segment_id != segment.segment_id)
    return refuse(BlockVerdict::old_content, offset, "the block belongs to another segment");
  if (header->file_offset != offset || header->cluster_id != segment.cluster_id)
    return refuse(BlockVerdict::garbage, offset, "the block belongs to another place");
  if (!lengths_fit(*header, offset, segment))
    return refuse(BlockVerdict::garbage, offset, "the block's lengths contradict one another");
  BlockExamination result;
  result.verdict = BlockVerdict::valid;
  result.header = header;
  return result;
}

/// Says which sectors of a payload with a wrong digest or padding are bad, and how.
BlockExamination refuse_payload(const BlockExamination& sound, std::span<const std::byte> block, std::uint64_t offset) {
  const BlockHeader& header = *sound.header;
  const auto sectors = block.subspan(header.header_bytes);
  BlockExamination result = refuse(BlockVerdict::garbage, offset, "the payload's digest or padding differs");
  bool found = false;
  bool all_old = true;
  for (std::size_t i = 0; i < sectors.size() / disk_block_bytes; ++i) {
    const auto sector = sectors.subspan(i * disk_block_bytes, disk_block_bytes);
    std::uint32_t expected = 0;
    std::memcpy(&expected, block.data() + sizeof(BlockHeader) + i * sizeof expected, sizeof expected);
    if (sector_hash(sector) == expected) continue;
    if (!found) result.bad_offset = offset + header.header_bytes + i * disk_block_bytes;
    found = true;
    all_old = all_old && has_zero_piece(sector);
  }
  if (found && all_old) {
    result.verdict = BlockVerdict::old_content;
    result.cause = "a piece of the payload was never written";
  }
  result.header = &header;
  return result;
}

}  // namespace

bool all_zero(std::span<const std::byte> bytes) {
  return all_equal(bytes, std::byte{0});
}

void finish_segment_header(SegmentHeader& header) {
  header.checksum = segment_checksum(header);
}

std::optional<SegmentHeaderDefect> segment_header_defect(const SegmentHeader& header) {
  if (header.magic != segment_magic) return SegmentHeaderDefect{false, "it is not a lockstep segment"};
  if (header.endian == std::byteswap(endian_marker))
    return SegmentHeaderDefect{true, "it was written on a machine of the other byte order"};
  if (header.checksum != segment_checksum(header)) return SegmentHeaderDefect{false, "its header's checksum differs"};
  if (header.version != journal_version || header.flags != 0 || header.block_bytes != disk_block_bytes ||
      !all_zero(std::as_bytes(std::span(header.zero))))
    return SegmentHeaderDefect{true, "it was written by a newer version of lockstep"};
  if (header.endian != endian_marker || header.segment_bytes < min_segment_bytes ||
      header.segment_bytes > max_segment_bytes || header.segment_bytes % disk_block_bytes != 0 ||
      header.max_inflight == 0 || header.max_inflight > max_inflight_limit ||
      header.max_batch_bytes > batch_bytes_limit)
    return SegmentHeaderDefect{false, "its header's limits make no sense"};
  return std::nullopt;
}

void pad_for_journal(std::span<std::byte> buffer, std::size_t payload_bytes) {
  const std::size_t end = round_up_to_block(payload_bytes);
  LOCKSTEP_ASSERT(end <= buffer.size(), "a batch's buffer must reach the next multiple of 4096");
  std::ranges::fill(buffer.subspan(payload_bytes, end - payload_bytes), journal_padding);
}

bool is_padded_for_journal(std::span<const std::byte> payload) {
  return is_padding({payload.data() + payload.size(), round_up_to_block(payload.size()) - payload.size()});
}

void build_block(BlockHeader header, std::span<const std::byte> payload, std::span<std::byte> block) {
  header.payload_bytes = static_cast<std::uint32_t>(payload.size());
  header.header_bytes = block_header_bytes(payload.size());
  header.total_bytes = block_total_bytes(payload.size());
  const bool is_inline = payload.size() <= inline_payload_bytes;
  header.flags = is_inline ? block_flag_inline : 0;
  LOCKSTEP_ASSERT(block.size() >= header.header_bytes, "a block is built in a buffer that holds its header");
  block = block.first(header.header_bytes);

  std::size_t used = sizeof(BlockHeader);
  if (is_inline) {
    if (!payload.empty()) std::memcpy(block.data() + used, payload.data(), payload.size());
    used += payload.size();
  } else {
    for (std::size_t at = 0; at < payload.size(); at += disk_block_bytes, used += sizeof(std::uint32_t)) {
      const std::uint32_t hash = sector_hash({payload.data() + at, disk_block_bytes});
      std::memcpy(block.data() + used, &hash, sizeof hash);
    }
  }
  std::ranges::fill(block.subspan(used), journal_padding);
  std::memcpy(block.data(), &header, sizeof header);
  header.checksum = xxh3_128(block.subspan(checksum_bytes));
  std::memcpy(block.data(), &header.checksum, sizeof header.checksum);
}

BatchHeader batch_header_of(const BlockHeader& block) {
  BatchHeader batch;
  batch.index = block.index;
  batch.first_seq = block.first_seq;
  batch.first_time_ns = block.first_time_ns;
  batch.last_time_ns = block.last_time_ns;
  batch.record_count = block.record_count;
  batch.payload_bytes = block.payload_bytes;
  batch.schema_id = block.schema_id;
  batch.payload_digest = block.payload_digest;
  batch.prev_chain = block.prev_chain;
  batch.chain = block.chain;
  return batch;
}

BlockHeader batch_block(const BatchHeader& batch) {
  BlockHeader block;
  block.index = batch.index;
  block.first_seq = batch.first_seq;
  block.record_count = batch.record_count;
  block.first_time_ns = batch.first_time_ns;
  block.last_time_ns = batch.last_time_ns;
  block.schema_id = batch.schema_id;
  block.payload_bytes = batch.payload_bytes;
  block.payload_digest = batch.payload_digest;
  block.prev_chain = batch.prev_chain;
  block.chain = batch.chain;
  return block;
}

BlockExamination examine_block(std::span<const std::byte> image, std::uint64_t offset, const SegmentHeader& segment) {
  BlockExamination result = examine_header(image, offset, segment);
  if (result.verdict != BlockVerdict::valid) return result;
  const BlockHeader& header = *result.header;
  if (image.size() < header.total_bytes) {
    BlockExamination asked = ask_for(header.total_bytes);
    asked.header = &header;
    return asked;
  }
  const bool is_inline = (header.flags & block_flag_inline) != 0;
  const auto block = image.first(header.total_bytes);
  const auto area = block.subspan(is_inline ? sizeof(BlockHeader) : header.header_bytes);
  const auto payload = area.first(header.payload_bytes);
  const auto table_end =
      is_inline ? header.header_bytes : sizeof(BlockHeader) + area.size() / disk_block_bytes * sizeof(std::uint32_t);
  if (header.payload_digest != xxh3_128(payload) || !is_padding(area.subspan(header.payload_bytes)) ||
      !is_padding(block.subspan(table_end, header.header_bytes - table_end)))
    return refuse_payload(result, block, offset);
  result.payload = payload;
  return result;
}

const BlockHeader* find_block_header(std::span<const std::byte> image, std::uint64_t offset,
                                     const SegmentHeader& segment) {
  return examine_header(image, offset, segment).header;
}

std::optional<std::string_view> continuity_defect(const HistoryPosition& position, const BlockHeader& block) {
  const bool is_batch = block.type == BlockType::batch;
  if (block.index != position.index + (is_batch ? 1 : 0)) return "batch indexes have a gap";
  if (block.first_seq != position.seq + 1) return "sequence numbers have a gap";
  if (block.first_time_ns < position.time_ns || block.last_time_ns < block.first_time_ns) return "time runs back";
  if (block.prev_chain != position.chain) return "the chain does not follow from the batch before";
  if (block.chain != (is_batch ? batch_chain(batch_header_of(block)) : position.chain))
    return "the chain differs from the fields it covers";
  return std::nullopt;
}

std::optional<SealView> parse_seal(std::span<const std::byte> payload) {
  if (payload.size() < sizeof(SealSummary)) return std::nullopt;
  const auto* summary = reinterpret_cast<const SealSummary*>(payload.data());
  const auto entries = payload.subspan(sizeof(SealSummary));
  if (summary->entry_count > max_seal_entries || entries.size() != summary->entry_count * sizeof(SealEntry))
    return std::nullopt;
  return SealView{summary, {reinterpret_cast<const SealEntry*>(entries.data()), summary->entry_count}};
}

std::optional<HistoryPosition> parse_truncate(std::span<const std::byte> payload) {
  if (payload.size() != sizeof(TruncateTarget)) return std::nullopt;
  const auto* target = reinterpret_cast<const TruncateTarget*>(payload.data());
  return HistoryPosition{target->last_index, target->last_seq, target->last_time_ns, target->last_chain};
}

TruncateTarget truncate_target(const HistoryPosition& position) {
  return {position.index, position.seq, position.time_ns, 0, position.chain};
}

HistoryPosition position_behind(const HistoryPosition& position, const BlockExamination& block) {
  if (block.header->type == BlockType::batch) return position_after(batch_header_of(*block.header));
  if (block.header->type == BlockType::truncate) return parse_truncate(block.payload).value_or(position);
  return position;
}

}  // namespace lockstep
