// SPDX-License-Identifier: Apache-2.0
#include "journal/snapshot_restore.hpp"

#include <fmt/format.h>

#include "journal/directory.hpp"
#include "journal/directory_lock.hpp"
#include "journal/file_copy.hpp"
#include "journal/hard_state.hpp"
#include "journal/hash_log.hpp"
#include "journal/segment_file.hpp"
#include "journal/snapshots.hpp"

namespace lockstep {
namespace {

Result<void> check_empty(Disk& disk, const std::string& directory) {
  const auto names = disk.list(directory);
  if (!names) return std::unexpected(names.error());
  if (names->empty()) return {};
  const auto files = list_journal(disk, directory);
  const bool interrupted = files && files->half_made();
  return fail(
      ErrorCode::usage,
      fmt::format("{} is not empty ({}, …): name a directory that is missing or empty{}", directory, names->front(),
                  interrupted ? "; an interrupted restore or cut left this one, and it may be "
                                "removed"
                              : ""));
}

HardState state_of(const SnapshotHeader& header, const Digest& digest) {
  HardState state;
  state.cluster_id = header.cluster_id;
  state.snapshot_index = state.durable_index = header.index;
  state.snapshot_term = header.term;
  state.snapshot_chain = state.durable_chain = header.chain;
  state.snapshot_digest = digest;
  return state;
}

/// A segment that holds no batch and says behind which one the history goes on. Its id is 2: 1 begins with batch 1.
Result<HardState> make_journal(Disk& disk, const std::string& directory, const SnapshotHeader& header,
                               const Digest& digest) {
  SegmentHeader segment;
  segment.cluster_id = header.cluster_id;
  segment.segment_id = 2;
  segment.nonce = xxh3_64(object_bytes(header.checksum));
  segment.segment_bytes = min_segment_bytes;
  segment.max_inflight = 1;
  segment.max_batch_bytes = batch_bytes_limit;
  segment.max_record_bytes = batch_bytes_limit;
  auto file = make_segment(disk, directory, segment);
  if (!file) return std::unexpected(file.error());
  SealBuilder seal;
  seal.start(segment, position_of(header));
  const auto payload = seal.payload();
  BlockHeader block = control_header(BlockType::seal, segment, position_of(header));
  block.payload_digest = xxh3_128(payload);
  block.file_offset = disk_block_bytes;
  block.block_no = 1;
  block.prev_block = segment.checksum;
  AlignedBuffer bytes(seal_block_bytes);
  build_block(block, payload, bytes.span());
  auto written = disk.write(*file, disk_block_bytes, bytes.span());
  if (written) written = disk.sync(*file);
  disk.close(*file);
  if (!written) return std::unexpected(written.error());
  HardState state = state_of(header, digest);
  state.oldest_segment_id = state.newest_segment_id = segment.segment_id;
  return state;
}

/// The segments from the last one that begins at or before the batch behind the snapshot.
Result<HardState> copy_journal(Disk& disk, const std::string& from, const std::string& directory,
                               const SnapshotHeader& header, const Digest& digest) {
  if (auto there = require_journal(disk, from); !there) return std::unexpected(there.error());
  const auto lock = DirectoryLock::take(disk, from);
  if (!lock) return std::unexpected(lock.error());
  auto state = look_at_hard_state(disk, from);
  if (!state) return std::unexpected(state.error());
  const auto segments = journal_goes_on_from(disk, from, header);
  if (!segments)
    return fail(segments.error().code, fmt::format("{}; nothing was restored: name the journal that the snapshot was "
                                                   "taken of, or none",
                                                   segments.error().message));
  for (const std::uint64_t id : *segments) {
    const std::string name = segment_name(id);
    if (auto copied = copy_file(disk, fmt::format("{}/{}", from, name), directory, name); !copied)
      return std::unexpected(copied.error());
  }
  state->oldest_segment_id = segments->front();
  state->newest_segment_id = segments->back();  // blank ones were made ahead, and are not copied
  state->snapshot_index = header.index;
  state->snapshot_term = header.term;
  state->snapshot_chain = header.chain;
  state->snapshot_digest = digest;
  state->previous_snapshot_index = 0;
  if (state->durable_index < header.index) {
    state->durable_index = header.index;
    state->durable_chain = header.chain;
  }
  return *state;
}

/// The roots that the directory's history is to be compared by: the snapshot's own, and behind it those that the source
/// recorded. A source that recorded another root for the snapshot's batch is refused.
Result<void> make_hash_log(Disk& disk, const SnapshotRestore& restore, const SnapshotHeader& header,
                           const HardState& state) {
  auto log = HashLog::open(disk, restore.directory, state.cluster_id, state.replica_id, UINT64_MAX);
  if (!log) return std::unexpected(log.error());
  HashEntry start;
  start.kind = HashKind::resumed;
  start.index = header.index;
  start.last_seq = header.seq;
  start.time_ns = header.time_ns;
  start.state_root = header.root;
  start.effects = header.effects;
  start.chain = header.chain;
  if (auto added = log->append(start); !added) return added;
  const auto recorded = restore.journal
                            ? recorded_entries(disk, *restore.journal, state.cluster_id, state.replica_id, UINT64_MAX)
                            : Result<std::vector<HashEntry>>{};
  if (!recorded) return std::unexpected(recorded.error());
  for (const HashEntry& entry : *recorded)
    if (entry.index >= header.index)
      if (auto added = log->append(entry); !added) return added;
  return log->sync();
}

/// Everything is durable under its name before the hard state gets its own.
Result<void> fill_directory(Disk& disk, const SnapshotRestore& restore, const SnapshotReader& snapshot) {
  const SnapshotHeader& header = snapshot.header();
  auto state = restore.journal ? copy_journal(disk, *restore.journal, restore.directory, header, snapshot.digest())
                               : make_journal(disk, restore.directory, header, snapshot.digest());
  if (!state) return std::unexpected(state.error());
  auto copied = copy_file(disk, restore.snapshot, restore.directory, snapshot_name(header.index));
  if (!copied) return copied;
  if (auto made = make_hash_log(disk, restore, header, *state); !made) return made;
  return HardStateFile::create(disk, restore.directory, *state);
}

}  // namespace

Result<SnapshotHeader> restore_directory(Disk& disk, const SnapshotRestore& restore) {
  if (auto verified = verify_snapshot(disk, restore.snapshot); !verified) return std::unexpected(verified.error());
  const auto snapshot = SnapshotReader::open(disk, restore.snapshot);
  if (!snapshot) return std::unexpected(snapshot.error());
  DirectoriesMade directories(disk, restore.directory);
  if (auto made = make_data_directory(disk, restore.directory); !made) return std::unexpected(made.error());
  const auto lock = DirectoryLock::take(disk, restore.directory);
  if (!lock) return std::unexpected(lock.error());
  if (auto empty = check_empty(disk, restore.directory); !empty) return std::unexpected(empty.error());
  if (auto filled = fill_directory(disk, restore, *snapshot); !filled) {
    clear_data_directory(disk, restore.directory);
    return std::unexpected(filled.error());
  }
  directories.keep();
  return snapshot->header();
}

}  // namespace lockstep
