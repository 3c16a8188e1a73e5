// SPDX-License-Identifier: Apache-2.0
#pragma once

/// A snapshot's layout on disk, version 1: the whole state at the end of one batch, as one canonical stream, so that
/// two replicas' files of one checkpoint are equal byte for byte. A file `snap-<batch, 16 hex digits>.snp` in the data
/// directory; `snap-*.snp.tmp` until it is whole, durable and read back.
///
///     0          4096                                      table_offset
///     +----------+-----------------------------------------+---------------------------+----------+
///     | header   | images: shard 0's arenas in order,      | table: shards, arenas,    | footer   |
///     | 4096     | shard 1's, …; each padded to 4096       | padded to 4096            | 4096     |
///     +----------+-----------------------------------------+---------------------------+----------+
///
/// The images are what the header's state root is the root of (base/state_digest.hpp), and have no other checksum.
/// Header and footer have their own; the footer holds the header's and the table's, and its own checksum names the
/// snapshot. Padding is zero and is verified. Little-endian, naturally aligned; reserved bytes are zero, and a reader
/// refuses others, a higher version and an unknown flag.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "journal/format.hpp"

namespace lockstep {

inline constexpr std::uint64_t snapshot_magic = magic("LKSTSNAP");
inline constexpr std::uint64_t snapshot_end_magic = magic("LKSTSNPE");
inline constexpr std::uint16_t snapshot_version = 1;
inline constexpr std::size_t snapshot_genesis_bytes = 2048;
inline constexpr std::uint32_t snapshot_shards_limit = 4096;

///      0         16      24       26    28      32          48     56    64   72    80      96    112
///     +---------+-------+--------+-----+-------+-----------+------+-----+----+-----+-------+-----+---------+
///     | checksum| magic | version| flags| endian| cluster id| index| term| seq| time| chain | root| effects |
///     +---------+-------+--------+-----+-------+-----------+------+-----+----+-----+-------+-----+---------+
///     | image bytes | table bytes | total bytes | arenas | shards | genesis bytes | genesis 2048 | zero |
///     +-------------+-------------+-------------+--------+--------+---------------+--------------+------+
///      128           136           144           152      160      164             168            2216  4096
struct SnapshotHeader {
  Digest checksum;  ///< XXH3-128 of [16, 4096)
  std::uint64_t magic = snapshot_magic;
  std::uint16_t version = snapshot_version;
  std::uint16_t flags = 0;  ///< none defined
  std::uint32_t endian = endian_marker;
  ClusterId cluster_id;
  std::uint64_t index = 0;        ///< the batch at whose end the state holds
  std::uint64_t term = 0;         ///< consensus' own; 0 of a stand-alone node
  std::uint64_t seq = 0;          ///< last sequence number up to it
  std::int64_t time_ns = 0;       ///< last stamp up to it
  Digest chain;                   ///< the journal's, at it
  Digest root;                    ///< of the state
  Digest effects;                 ///< of all that was emitted up to it
  std::uint64_t image_bytes = 0;  ///< of all images, each padded to 4096
  std::uint64_t table_bytes = 0;  ///< without its padding
  std::uint64_t total_bytes = 0;  ///< of the file
  std::uint64_t arena_count = 0;
  std::uint32_t shard_count = 0;
  std::uint32_t genesis_bytes = 0;
  std::uint8_t genesis[snapshot_genesis_bytes] = {};  ///< payload of the history's genesis record
  std::uint8_t zero[disk_block_bytes - 2216] = {};
};
static_assert(sizeof(SnapshotHeader) == 4096 && alignof(SnapshotHeader) == 8);
static_assert(offsetof(SnapshotHeader, magic) == 16 && offsetof(SnapshotHeader, version) == 24);
static_assert(offsetof(SnapshotHeader, flags) == 26 && offsetof(SnapshotHeader, endian) == 28);
static_assert(offsetof(SnapshotHeader, cluster_id) == 32 && offsetof(SnapshotHeader, index) == 48);
static_assert(offsetof(SnapshotHeader, term) == 56 && offsetof(SnapshotHeader, seq) == 64);
static_assert(offsetof(SnapshotHeader, time_ns) == 72 && offsetof(SnapshotHeader, chain) == 80);
static_assert(offsetof(SnapshotHeader, root) == 96 && offsetof(SnapshotHeader, effects) == 112);
static_assert(offsetof(SnapshotHeader, image_bytes) == 128 && offsetof(SnapshotHeader, table_bytes) == 136);
static_assert(offsetof(SnapshotHeader, total_bytes) == 144 && offsetof(SnapshotHeader, arena_count) == 152);
static_assert(offsetof(SnapshotHeader, shard_count) == 160 && offsetof(SnapshotHeader, genesis_bytes) == 164);
static_assert(offsetof(SnapshotHeader, genesis) == 168 && offsetof(SnapshotHeader, zero) == 2216);

/// The table: one of these a shard, in order, then one SnapshotArena an arena, in the order of their images.
struct SnapshotShard {
  Digest effects;  ///< running hash over the shard's effects
  std::uint64_t arenas = 0;
  std::uint64_t zero = 0;
};
static_assert(sizeof(SnapshotShard) == 32 && offsetof(SnapshotShard, arenas) == 16);

struct SnapshotArena {
  std::uint32_t actor_type = 0;  ///< 0 with key 0: the shard's own arena, the first of each shard
  std::uint32_t zero0 = 0;
  std::uint64_t actor_key = 0;
  std::uint64_t image_bytes = 0;  ///< without padding; above 0
  std::uint64_t zero1 = 0;
  Digest digest;  ///< of the image's pages
};
static_assert(sizeof(SnapshotArena) == 48 && offsetof(SnapshotArena, actor_key) == 8);
static_assert(offsetof(SnapshotArena, image_bytes) == 16 && offsetof(SnapshotArena, digest) == 32);

///      0         16      24       26    28      32               48            64           72     4096
///     +---------+-------+--------+-----+-------+----------------+-------------+------------+------+
///     | checksum| magic | version| flags| endian| header checksum| table digest| total bytes| zero |
///     +---------+-------+--------+-----+-------+----------------+-------------+------------+------+
struct SnapshotFooter {
  Digest checksum;  ///< XXH3-128 of [16, 4096): the snapshot's digest
  std::uint64_t magic = snapshot_end_magic;
  std::uint16_t version = snapshot_version;
  std::uint16_t flags = 0;
  std::uint32_t endian = endian_marker;
  Digest header_checksum;
  Digest table_digest;  ///< XXH3-128 of the table without its padding
  std::uint64_t total_bytes = 0;
  std::uint8_t zero[disk_block_bytes - 72] = {};
};
static_assert(sizeof(SnapshotFooter) == 4096 && offsetof(SnapshotFooter, magic) == 16);
static_assert(offsetof(SnapshotFooter, header_checksum) == 32 && offsetof(SnapshotFooter, table_digest) == 48);
static_assert(offsetof(SnapshotFooter, total_bytes) == 64 && offsetof(SnapshotFooter, zero) == 72);

/// Header's or footer's checksum as it has to be.
template <class Page>
[[nodiscard]] Digest page_checksum(const Page& page) {
  return xxh3_128(object_bytes(page).subspan(sizeof(Digest)));
}

[[nodiscard]] inline HistoryPosition position_of(const SnapshotHeader& header) {
  return {header.index, header.seq, header.time_ns, header.chain};
}

/// "snap-000000000000002a.snp"
[[nodiscard]] std::string snapshot_name(std::uint64_t index);
/// The batch that a name of snapshot_name() names; nothing of any other.
[[nodiscard]] std::optional<std::uint64_t> snapshot_index_of(std::string_view name);
/// Whether the name is that of a snapshot half made.
[[nodiscard]] bool is_half_made_snapshot(std::string_view name);

}  // namespace lockstep
