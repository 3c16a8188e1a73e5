// SPDX-License-Identifier: Apache-2.0
#include "journal/snapshot_restore.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "journal/directory.hpp"
#include "journal/hard_state.hpp"
#include "journal/segment_file.hpp"
#include "journal/snapshots.hpp"

namespace lockstep {
namespace {

/// Copies a file of whole blocks, durably.
Result<void> copy_file(Disk& disk, const std::string& from, const std::string& to) {
  auto source = disk.open(from, OpenMode::read);
  if (!source) return std::unexpected(source.error());
  auto target = disk.open(to, OpenMode::create_direct);
  Result<void> result;
  if (!target) result = std::unexpected(target.error());
  AlignedBuffer piece(std::size_t{1} << 20);
  for (std::uint64_t offset = 0; result;) {
    const auto got = disk.read(*source, offset, piece.span());
    if (!got) result = std::unexpected(got.error());
    if (!got || *got == 0) break;
    std::memset(piece.data() + *got, 0, round_up_to_block(*got) - *got);
    result = disk.write(*target, offset, piece.span().first(round_up_to_block(*got)));
    offset += *got;
  }
  if (result) result = disk.sync(*target);
  disk.close(*source);
  if (target) disk.close(*target);
  return result;
}

Result<void> make_empty_directory(Disk& disk, const std::string& directory) {
  if (auto made = disk.make_directory(directory); !made) return made;
  const auto names = disk.list(directory);
  if (!names) return std::unexpected(names.error());
  if (names->empty()) return {};
  return fail(ErrorCode::usage, fmt::format("{} is not empty ({}, …): name a directory that is missing or empty",
                                            directory, names->front()));
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
  auto state = look_at_hard_state(disk, from);
  if (!state) return std::unexpected(state.error());
  const auto segments = journal_goes_on_from(disk, from, header);
  if (!segments) return std::unexpected(segments.error());
  for (const std::uint64_t id : *segments) {
    const std::string name = fmt::format("/{}", segment_name(id));
    if (auto copied = copy_file(disk, from + name, directory + name); !copied) return std::unexpected(copied.error());
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

}  // namespace

Result<SnapshotHeader> restore_directory(Disk& disk, const SnapshotRestore& restore) {
  if (auto verified = verify_snapshot(disk, restore.snapshot); !verified) return std::unexpected(verified.error());
  auto reader = SnapshotReader::open(disk, restore.snapshot);
  if (!reader) return std::unexpected(reader.error());
  const SnapshotHeader header = reader->header();
  if (auto made = make_empty_directory(disk, restore.directory); !made) return std::unexpected(made.error());
  auto state = restore.journal ? copy_journal(disk, *restore.journal, restore.directory, header, reader->digest())
                               : make_journal(disk, restore.directory, header, reader->digest());
  if (!state) return std::unexpected(state.error());
  const std::string path = restore.directory + "/" + snapshot_name(header.index);
  if (auto copied = copy_file(disk, restore.snapshot, path); !copied) return std::unexpected(copied.error());
  if (auto created = HardStateFile::create(disk, restore.directory, *state); !created)
    return std::unexpected(created.error());
  return header;
}

}  // namespace lockstep
