// SPDX-License-Identifier: Apache-2.0
#pragma once

/// Hard state: the few values of a node that must survive beside its log. Two copies of one 4096-byte sector, at 0 and
/// 65536 of a file of fixed size, written one after the other, each made durable before the next step; what depends on
/// a value (a vote, a spare segment's use) happens only when both copies hold it. So one torn or rotten copy never
/// brings an older value back unnoticed, which alternating slots would.
///
///      0         16      24       26    28     32          48       56        64      80    88         96
///     +---------+-------+--------+-----+------+-----------+--------+---------+-------+-----+----------+------------+
///     | checksum| magic | version| copy| flags| cluster id| replica| sequence| parent| term| voted for| incarnation|
///     +---------+-------+--------+-----+------+-----------+--------+---------+-------+-----+----------+------------+
///     | oldest segment | newest segment | snapshot: index term chain digest | previous snapshot | durable index, chain
///     +----------------+----------------+-----------------------------------+-------------------+--------------------
///      104              112              120   128  136   152                168                 176            184
///     +---------------+------+------------+-------------+-----------+------+------------+------+
///     | recovery state| zero | limbo index| config index| config len| zero | config 2048| zero |
///     +---------------+------+------------+-------------+-----------+------+------------+------+
///      200             201    208          216           224         228    232          2280   4096
///
/// The file is also one of the two locks of a data directory. One thread at a time.

#include <optional>
#include <string>

#include "base/error.hpp"
#include "journal/disk.hpp"
#include "journal/format.hpp"

namespace lockstep {

inline constexpr std::uint64_t hard_state_magic = magic("LKSTHARD");
inline constexpr std::uint64_t hard_state_second_copy = 65536;
inline constexpr std::uint64_t hard_state_file_bytes = hard_state_second_copy + disk_block_bytes;

/// Some batch of the journal holds a skip (journal/skips.hpp).
inline constexpr std::uint32_t hard_state_has_skips = 1;
/// Some segment may have a TRUNCATE block: whoever reads the history has to look ahead for it.
inline constexpr std::uint32_t hard_state_has_truncates = 2;
inline constexpr std::uint32_t hard_state_known_flags = hard_state_has_skips | hard_state_has_truncates;

/// What a start found of the log's end, and what a cluster's member may therefore not do: neither vote nor lead until
/// the leader has proved that it holds all it may have acknowledged. Kept over starts.
enum class RecoveryState : std::uint8_t {
  normal = 0,
  limbo = 1,      ///< a tail was cut that may have been acknowledged, up to limbo_index
  repairing = 2,  ///< acknowledged batches are missing, to be had from other replicas
};

struct HardState {
  Digest checksum;  ///< XXH3-128 of [16, 4096) with copy = 0
  std::uint64_t magic = hard_state_magic;
  std::uint16_t version = journal_version;
  std::uint16_t copy = 0;   ///< 0 or 1
  std::uint32_t flags = 0;  ///< hard_state_has_…
  ClusterId cluster_id;
  std::uint64_t replica_id = 0;
  std::uint64_t sequence = 0;  ///< + 1 with each store
  Digest parent;               ///< checksum of sequence - 1
  std::uint64_t term = 0;
  std::uint64_t voted_for = 0;          ///< replica + 1; 0 is nobody
  std::uint64_t incarnation = 0;        ///< starts of a process on this directory
  std::uint64_t oldest_segment_id = 1;  ///< a lower id has been pruned
  std::uint64_t newest_segment_id = 0;  ///< a journal without this segment has lost it
  std::uint64_t snapshot_index = 0;
  std::uint64_t snapshot_term = 0;
  Digest snapshot_chain;
  Digest snapshot_digest;
  std::uint64_t previous_snapshot_index = 0;
  std::uint64_t durable_index = 0;  ///< some batch that was durable then; lags behind
  Digest durable_chain;
  RecoveryState recovery_state = RecoveryState::normal;
  std::uint8_t zero0[7] = {};
  std::uint64_t limbo_index = 0;  ///< the highest batch that may have been acknowledged here and is not there
  std::uint64_t config_index = 0;
  std::uint32_t config_bytes = 0;
  std::uint32_t zero1 = 0;
  std::uint8_t config[2048] = {};
  std::uint8_t zero2[disk_block_bytes - 2280] = {};
};
static_assert(sizeof(HardState) == 4096 && alignof(HardState) == 8);
static_assert(offsetof(HardState, magic) == 16 && offsetof(HardState, version) == 24);
static_assert(offsetof(HardState, copy) == 26 && offsetof(HardState, flags) == 28);
static_assert(offsetof(HardState, cluster_id) == 32 && offsetof(HardState, replica_id) == 48);
static_assert(offsetof(HardState, sequence) == 56 && offsetof(HardState, parent) == 64);
static_assert(offsetof(HardState, term) == 80 && offsetof(HardState, voted_for) == 88);
static_assert(offsetof(HardState, incarnation) == 96 && offsetof(HardState, oldest_segment_id) == 104);
static_assert(offsetof(HardState, newest_segment_id) == 112 && offsetof(HardState, snapshot_index) == 120);
static_assert(offsetof(HardState, snapshot_term) == 128 && offsetof(HardState, snapshot_chain) == 136);
static_assert(offsetof(HardState, snapshot_digest) == 152 && offsetof(HardState, previous_snapshot_index) == 168);
static_assert(offsetof(HardState, durable_index) == 176 && offsetof(HardState, durable_chain) == 184);
static_assert(offsetof(HardState, recovery_state) == 200 && offsetof(HardState, limbo_index) == 208);
static_assert(offsetof(HardState, config_index) == 216 && offsetof(HardState, config_bytes) == 224);
static_assert(offsetof(HardState, config) == 232 && offsetof(HardState, zero2) == 2280);

/// The open hard state of a data directory. Closes its file, and so gives up its lock, when destroyed.
class HardStateFile {
 public:
  HardStateFile(HardStateFile&& other) noexcept;
  HardStateFile& operator=(HardStateFile&&) = delete;
  ~HardStateFile();

  /// Makes the file of a new directory with `first` in it: durable under its own name, or not there at all.
  [[nodiscard]] static Result<void> create(Disk& disk, const std::string& directory, HardState first);
  /// Opens it for storing. Refuses what read_hard_state() refuses.
  [[nodiscard]] static Result<HardStateFile> open(Disk& disk, const std::string& directory);

  [[nodiscard]] const HardState& value() const { return value_; }
  /// Stores `next` with the sequence, parent and checksum that follow; durable in both copies when it returns. After an
  /// Error nothing may be decided on the new values, and the file is not written again. What a crash left of a store
  /// before, or damage, is made good first.
  [[nodiscard]] Result<void> store(HardState next);
  [[nodiscard]] FileId file() const { return file_; }

 private:
  HardStateFile(Disk& disk, FileId file) : disk_(&disk), file_(file), sector_(disk_block_bytes) {}

  Disk* disk_;
  FileId file_;
  AlignedBuffer sector_;
  HardState value_;
  std::optional<std::uint16_t> lagging_copy_;  ///< found at open: it does not hold value_
};

inline constexpr const char* hard_state_name = "hardstate";

/// The hard state of a directory, for those who only look; also while its node stores another.
[[nodiscard]] Result<HardState> look_at_hard_state(Disk& disk, const std::string& directory);

/// Reads and judges both copies. Refuses: another size, both copies bad, two different states of one sequence, copies
/// more than one sequence apart (corrupt); a newer version (incompatible).
[[nodiscard]] Result<HardState> read_hard_state(Disk& disk, FileId file, const std::string& path);

}  // namespace lockstep
