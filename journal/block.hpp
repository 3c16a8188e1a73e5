// SPDX-License-Identifier: Apache-2.0
#pragma once

/// Making and judging the journal's blocks and segment headers, as bytes in memory. Building fills what a node adds to
/// a batch; examining trusts nothing and says for each refusal whether the bytes look never written (a crash) or
/// damaged. Any thread; pure functions, no allocation.

#include <optional>
#include <span>
#include <string_view>

#include "journal/format.hpp"

namespace lockstep {

/// The 4096-byte header of a segment with its checksum set.
void finish_segment_header(SegmentHeader& header);

struct SegmentHeaderDefect {
  bool incompatible = false;  ///< intact, but not for this program: newer, or from another kind of machine
  std::string_view cause;
};
/// What is wrong with a segment header, by itself; nothing when it is sound.
[[nodiscard]] std::optional<SegmentHeaderDefect> segment_header_defect(const SegmentHeader& header);

/// Fills padding up to the next multiple of 4096 behind a payload: what the writer asks of whoever owns the buffer.
/// `buffer` is the payload's buffer, `payload_bytes` of it used; its size must reach that multiple.
void pad_for_journal(std::span<std::byte> buffer, std::size_t payload_bytes);
/// True when the bytes behind `payload` are so padded.
[[nodiscard]] bool is_padded_for_journal(std::span<const std::byte> payload);

/// Completes a block in `block` (block_header_bytes of its payload, 4096-aligned): lengths, sector hashes, padding,
/// checksum. `header` holds all other fields, the payload's digest among them. An INLINE payload is copied in; another
/// one is read to hash its sectors and must be padded.
void build_block(BlockHeader header, std::span<const std::byte> payload, std::span<std::byte> block);

/// The logical header a BATCH block carries.
[[nodiscard]] BatchHeader batch_header_of(const BlockHeader& block);

/// A BATCH block's header with the fields a batch has; the others say where it lies.
[[nodiscard]] BlockHeader batch_block(const BatchHeader& batch);

enum class BlockVerdict {
  valid,
  incomplete,   ///< `wanted_bytes` from the block's start are needed to tell
  old_content,  ///< each bad sector has a 512-byte piece of zeros, or holds a block of another segment's life
  garbage,      ///< damaged
  newer,        ///< intact, but of a version or type this program does not know
};

struct BlockExamination {
  BlockVerdict verdict = BlockVerdict::garbage;
  /// The block's header when that verifies, whatever the payload is like.
  const BlockHeader* header = nullptr;
  std::span<const std::byte> payload;  ///< when valid
  std::size_t wanted_bytes = 0;
  std::uint64_t bad_offset = 0;  ///< file offset of the first bad sector
  std::string_view cause;
};

/// Examines the block that should start at `offset` of `segment`'s file; `image` holds the file's bytes from there.
[[nodiscard]] BlockExamination examine_block(std::span<const std::byte> image, std::uint64_t offset,
                                             const SegmentHeader& segment);

/// The header at `offset` if it verifies as one of `segment`'s, its payload unseen: evidence that a later block exists.
[[nodiscard]] const BlockHeader* find_block_header(std::span<const std::byte> image, std::uint64_t offset,
                                                   const SegmentHeader& segment);

/// What keeps a block from following `position`: index, seq, time or chain. Nothing when it follows.
[[nodiscard]] std::optional<std::string_view> continuity_defect(const HistoryPosition& position,
                                                                const BlockHeader& block);

/// True when all bytes are zero.
[[nodiscard]] bool all_zero(std::span<const std::byte> bytes);

/// The parts of a SEAL's payload, or nothing when its lengths do not fit.
struct SealView {
  const SealSummary* summary = nullptr;
  std::span<const SealEntry> entries;
};
[[nodiscard]] std::optional<SealView> parse_seal(std::span<const std::byte> payload);

/// Where a TRUNCATE's payload says the history ends, or nothing when its length does not fit.
[[nodiscard]] std::optional<HistoryPosition> parse_truncate(std::span<const std::byte> payload);
[[nodiscard]] TruncateTarget truncate_target(const HistoryPosition& position);

/// Where the history ends behind a valid block that follows `position`.
[[nodiscard]] HistoryPosition position_behind(const HistoryPosition& position, const BlockExamination& block);

}  // namespace lockstep
