// SPDX-License-Identifier: Apache-2.0
#pragma once

/// The journal's layout on disk, version 1. A journal is a directory:
///
///     hardstate                     what must survive beside the log (journal/hard_state.hpp)
///     seg-0000000000000001.jnl ...  segments, ids without gaps
///     snap-000000000000002a.snp ... the state at the end of a batch (journal/snapshot_format.hpp)
///     breadcrumbs                   what a process was executing when it died (runtime/breadcrumbs.hpp); no part of
///                                   the history
///     hashlog                       state roots and effect chains by batch (journal/hash_log.hpp)
///     *.tmp                         half-made files: ignored, removed at start
///     *.bad                         copies of what an operator chose to cut: never read
///
/// A segment is a preallocated, zero-filled file: its header, then blocks, then one SEAL. A block is a whole number of
/// 4096-byte sectors, and a sector that holds acknowledged data is never written again.
///
///     0           4096
///     +-----------+--------+-------+-------+-----+-------+------+---------------+
///     | segment   | SCHEMA | BATCH | BATCH | ... | MARK  | SEAL | zeros         |
///     | header    | block  |       |       |     |       |      | (not written) |
///     +-----------+--------+-------+-------+-----+-------+------+---------------+
///
/// A block is its 256-byte header and a payload. Up to 3840 bytes of payload are INLINE, and the block is one sector:
///
///     0        256                    256 + payload             4096
///     +--------+----------------------+-------------------------+
///     | header | payload              | 0xA5 ...                |
///     +--------+----------------------+-------------------------+
///
/// Otherwise the header is followed by one hash for each payload sector, and the payload starts on a sector:
///
///     0        256                        header_bytes                      total_bytes
///     +--------+---------------------+----+--------------------+------------+
///     | header | sector hashes, 4 B  |0xA5| payload            | 0xA5 ...   |
///     +--------+---------------------+----+--------------------+------------+
///
/// Padding is 0xA5 and is verified, so that no 512-byte piece of a written block is all zero except inside a payload:
/// a zero piece means "never written", anything else that does not verify means "damaged". A block is accepted by its
/// header's checksum, its payload's digest, its padding, and by following from the block and the batch before it; the
/// sector hashes only tell where and how a refused block is bad.
///
/// Everything is little-endian, naturally aligned, without implicit padding. Reserved bytes are zero; a reader refuses
/// others, as it refuses a higher version, an unknown flag and an unknown block type without the ignorable bit.

#include <bit>
#include <cstddef>
#include <cstdint>

#include "base/digest.hpp"
#include "journal/aligned_buffer.hpp"
#include "journal/batch.hpp"

namespace lockstep {

static_assert(std::endian::native == std::endian::little, "the journal's integers are little-endian");

/// Names a cluster; random, drawn once when its first journal is made. All zero is none.
using ClusterId = Digest;

inline constexpr std::uint16_t journal_version = 1;
inline constexpr std::uint32_t endian_marker = 0x01020304;
inline constexpr std::uint8_t hash_xxh3 = 1;
inline constexpr std::byte journal_padding{0xA5};

/// Eight characters as the integer that has them in memory order.
[[nodiscard]] constexpr std::uint64_t magic(const char (&text)[9]) {
  std::uint64_t value = 0;
  for (unsigned i = 0; i < 8; ++i) value |= std::uint64_t{static_cast<unsigned char>(text[i])} << (8 * i);
  return value;
}

inline constexpr std::uint64_t segment_magic = magic("LKSTSEG1");
inline constexpr std::uint64_t block_magic = magic("LKSTBLK1");

/// Limits a journal may be made with; what lies outside is refused as damage before it is used as a length.
inline constexpr std::uint64_t min_segment_bytes = 64 << 10;
inline constexpr std::uint64_t max_segment_bytes = 1 << 30;
inline constexpr std::uint32_t max_inflight_limit = 64;
inline constexpr std::uint32_t batch_bytes_limit = 8 << 20;

///      0         16      24       26     28       32          48        56          64     72          80
///     +---------+-------+--------+------+--------+-----------+---------+-----------+------+-----------+
///     | checksum| magic | version| flags| endian | cluster id| replica | segment id| nonce| prev nonce|
///     +---------+-------+--------+------+--------+-----------+---------+-----------+------+-----------+
///     | segment bytes | block bytes | max inflight | max batch | max record | incarnation | created | build id 32 |
///     zero
///     +---------------+-------------+--------------+-----------+------------+-------------+---------+-------------+---
///      80              88            92             96          100          104           112       120           152
struct SegmentHeader {
  Digest checksum;  ///< XXH3-128 of [16, 4096)
  std::uint64_t magic = segment_magic;
  std::uint16_t version = journal_version;
  std::uint16_t flags = 0;  ///< none defined
  std::uint32_t endian = endian_marker;
  ClusterId cluster_id;
  std::uint64_t replica_id = 0;
  std::uint64_t segment_id = 0;     ///< 1, 2, 3, … without gaps
  std::uint64_t nonce = 0;          ///< random; stamped into each of the segment's blocks
  std::uint64_t prev_nonce = 0;     ///< nonce of segment_id - 1; 0 before the first
  std::uint64_t segment_bytes = 0;  ///< size of the file as it was made
  std::uint32_t block_bytes = disk_block_bytes;
  std::uint32_t max_inflight = 0;  ///< K: block n was submitted only when block n - K was durable
  std::uint32_t max_batch_bytes = 0;
  std::uint32_t max_record_bytes = 0;
  std::uint64_t incarnation = 0;  ///< of the process that made it
  std::int64_t created_ns = 0;    ///< for people only: nothing is decided by it
  std::uint8_t build_id[32] = {};
  std::uint8_t zero[disk_block_bytes - 152] = {};
};
static_assert(sizeof(SegmentHeader) == 4096 && alignof(SegmentHeader) == 8);
static_assert(offsetof(SegmentHeader, magic) == 16 && offsetof(SegmentHeader, version) == 24);
static_assert(offsetof(SegmentHeader, flags) == 26 && offsetof(SegmentHeader, endian) == 28);
static_assert(offsetof(SegmentHeader, cluster_id) == 32 && offsetof(SegmentHeader, replica_id) == 48);
static_assert(offsetof(SegmentHeader, segment_id) == 56 && offsetof(SegmentHeader, nonce) == 64);
static_assert(offsetof(SegmentHeader, prev_nonce) == 72 && offsetof(SegmentHeader, segment_bytes) == 80);
static_assert(offsetof(SegmentHeader, block_bytes) == 88 && offsetof(SegmentHeader, max_inflight) == 92);
static_assert(offsetof(SegmentHeader, max_batch_bytes) == 96 && offsetof(SegmentHeader, max_record_bytes) == 100);
static_assert(offsetof(SegmentHeader, incarnation) == 104 && offsetof(SegmentHeader, created_ns) == 112);
static_assert(offsetof(SegmentHeader, build_id) == 120 && offsetof(SegmentHeader, zero) == 152);

enum class BlockType : std::uint8_t {
  batch = 1,     ///< payload: the batch's records
  mark = 2,      ///< no payload; says that all before it is durable, written when nothing else would say so
  truncate = 3,  ///< payload: TruncateTarget; a suffix that lost an election is taken back; never stand-alone
  seal = 4,      ///< payload: SealSummary and its entries; the last block of a segment
  schema = 5,    ///< payload: the .bfbs that explains the batches behind it
};
/// A block type with this bit may be passed over by a reader that does not know it.
inline constexpr std::uint8_t ignorable_block_bit = 0x80;

inline constexpr std::uint32_t block_flag_inline = 1;

///      0         16      24       26    27        28            32          48          56     64           72
///     +---------+-------+--------+-----+---------+-------------+-----------+-----------+------+------------+
///     | checksum| magic | version| type| hash alg| header bytes| cluster id| segment id| nonce| file offset|
///     +---------+-------+--------+-----+---------+-------------+-----------+-----------+------+------------+
///     | block no| flags | total bytes | payload bytes | index | term | first seq | records | zero | first time | last
///     +---------+-------+-------------+---------------+-------+------+-----------+---------+------+------------+-----
///      72        76      80            84              88      96     104         112       116    120          128
///     +-----------+---------------+--------------+----------------+------------+-------+-----------+------+
///     | schema id | durable block | commit index | payload digest | prev chain | chain | prev block| zero |
///     +-----------+---------------+--------------+----------------+------------+-------+-----------+------+
///      136         144             152            160              176          192     208         224    256
///
/// The logical fields are those of BatchHeader, the others say where and when this node stored it. In a
/// block that is no batch they repeat the position reached: index, next seq, time and chain of the last batch.
struct BlockHeader {
  Digest checksum;  ///< XXH3-128 of [16, header_bytes); of an INLINE block's payload and padding too
  std::uint64_t magic = block_magic;
  std::uint16_t version = journal_version;
  BlockType type = BlockType::batch;
  std::uint8_t hash_algorithm = hash_xxh3;
  std::uint32_t header_bytes = 0;  ///< a multiple of 4096
  ClusterId cluster_id;
  std::uint64_t segment_id = 0;
  std::uint64_t nonce = 0;
  std::uint64_t file_offset = 0;  ///< where it belongs: shows a misdirected write
  std::uint32_t block_no = 0;     ///< 1, 2, 3, … in its segment
  std::uint32_t flags = 0;        ///< block_flag_inline
  std::uint32_t total_bytes = 0;  ///< a multiple of 4096
  std::uint32_t payload_bytes = 0;
  std::uint64_t index = 0;
  std::uint64_t term = 0;  ///< consensus' own; 0 in a stand-alone journal
  std::uint64_t first_seq = 0;
  std::uint32_t record_count = 0;
  std::uint32_t zero0 = 0;
  std::int64_t first_time_ns = 0;
  std::int64_t last_time_ns = 0;
  std::uint64_t schema_id = 0;
  std::uint64_t durable_block = 0;  ///< all blocks up to this one were durable when this one was submitted
  std::uint64_t commit_index = 0;   ///< known committed then; 0 in a stand-alone journal
  Digest payload_digest;
  Digest prev_chain;
  Digest chain;
  Digest prev_block;  ///< checksum of the block before it, or of the segment header
  std::uint8_t zero[32] = {};
};
static_assert(sizeof(BlockHeader) == 256 && alignof(BlockHeader) == 8);
static_assert(offsetof(BlockHeader, magic) == 16 && offsetof(BlockHeader, version) == 24);
static_assert(offsetof(BlockHeader, type) == 26 && offsetof(BlockHeader, hash_algorithm) == 27);
static_assert(offsetof(BlockHeader, header_bytes) == 28 && offsetof(BlockHeader, cluster_id) == 32);
static_assert(offsetof(BlockHeader, segment_id) == 48 && offsetof(BlockHeader, nonce) == 56);
static_assert(offsetof(BlockHeader, file_offset) == 64 && offsetof(BlockHeader, block_no) == 72);
static_assert(offsetof(BlockHeader, flags) == 76 && offsetof(BlockHeader, total_bytes) == 80);
static_assert(offsetof(BlockHeader, payload_bytes) == 84 && offsetof(BlockHeader, index) == 88);
static_assert(offsetof(BlockHeader, term) == 96 && offsetof(BlockHeader, first_seq) == 104);
static_assert(offsetof(BlockHeader, record_count) == 112 && offsetof(BlockHeader, zero0) == 116);
static_assert(offsetof(BlockHeader, first_time_ns) == 120 && offsetof(BlockHeader, last_time_ns) == 128);
static_assert(offsetof(BlockHeader, schema_id) == 136 && offsetof(BlockHeader, durable_block) == 144);
static_assert(offsetof(BlockHeader, commit_index) == 152 && offsetof(BlockHeader, payload_digest) == 160);
static_assert(offsetof(BlockHeader, prev_chain) == 176 && offsetof(BlockHeader, chain) == 192);
static_assert(offsetof(BlockHeader, prev_block) == 208 && offsetof(BlockHeader, zero) == 224);

inline constexpr std::size_t inline_payload_bytes = disk_block_bytes - sizeof(BlockHeader);

/// Payload of a SEAL: what the segment holds, then `entry_count` entries, ascending, at most one for each 1/128th of
/// the segment, so that a reader can start near any batch.
struct SealSummary {
  std::uint64_t batches = 0;
  std::uint64_t first_index = 0;  ///< last_index + 1 when there are no batches
  std::uint64_t last_index = 0;
  std::uint64_t last_seq = 0;
  std::int64_t last_time_ns = 0;
  Digest last_chain;
  std::uint32_t entry_count = 0;
  std::uint32_t zero = 0;
};
struct SealEntry {
  std::uint64_t index = 0;   ///< of the batch at `sector`
  std::uint32_t sector = 0;  ///< its block's file offset / 4096
  std::uint32_t count = 0;   ///< batches from it to the next entry
};
static_assert(sizeof(SealSummary) == 64 && offsetof(SealSummary, last_chain) == 40);
static_assert(offsetof(SealSummary, entry_count) == 56);
static_assert(sizeof(SealEntry) == 16 && offsetof(SealEntry, sector) == 8);
inline constexpr std::size_t max_seal_entries = 128;
static_assert(sizeof(SealSummary) + max_seal_entries * sizeof(SealEntry) <= inline_payload_bytes,
              "a SEAL is one sector, which the writer keeps free for it");
inline constexpr std::uint64_t seal_block_bytes = disk_block_bytes;

/// Payload of a TRUNCATE: where the history ends behind it. The block's own header says, as each does, where it ended
/// before.
struct TruncateTarget {
  std::uint64_t last_index = 0;
  std::uint64_t last_seq = 0;
  std::int64_t last_time_ns = 0;
  std::uint64_t zero = 0;
  Digest last_chain;
};
static_assert(sizeof(TruncateTarget) == 48 && offsetof(TruncateTarget, last_chain) == 32);

/// Header bytes of a block with this payload.
[[nodiscard]] constexpr std::uint32_t block_header_bytes(std::size_t payload_bytes) {
  if (payload_bytes <= inline_payload_bytes) return disk_block_bytes;
  const std::size_t sectors = round_up_to_block(payload_bytes) / disk_block_bytes;
  return static_cast<std::uint32_t>(round_up_to_block(sizeof(BlockHeader) + sectors * sizeof(std::uint32_t)));
}

/// Bytes a payload takes in the journal, header included.
[[nodiscard]] constexpr std::uint32_t block_total_bytes(std::size_t payload_bytes) {
  if (payload_bytes <= inline_payload_bytes) return disk_block_bytes;
  return block_header_bytes(payload_bytes) + static_cast<std::uint32_t>(round_up_to_block(payload_bytes));
}
static_assert(block_total_bytes(3840) == 4096 && block_total_bytes(3841) == 8192);
static_assert(block_header_bytes(batch_bytes_limit) == 12288);

}  // namespace lockstep
