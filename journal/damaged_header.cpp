// SPDX-License-Identifier: Apache-2.0
#include "journal/damaged_header.hpp"

#include <algorithm>
#include <cstring>
#include <iterator>

#include "journal/directory.hpp"
#include "journal/flipped_bit.hpp"

namespace lockstep {
namespace {

Digest checksum_of(SegmentHeader header) {
  finish_segment_header(header);
  return header.checksum;
}

/// A segment's header when its file has one that is sound or can be restored.
std::optional<SegmentHeader> known_header(Disk& disk, const std::string& directory, std::uint64_t id,
                                          const HardState& state) {
  BlockStream segment(disk);
  if (id == 0 || !segment.open(directory + "/" + segment_name(id)) || !segment.header_known()) return std::nullopt;
  const SegmentHeader& header = segment.header();
  const bool ours = header.segment_id == id && header.cluster_id == state.cluster_id;
  return ours ? std::optional(header) : std::nullopt;
}

std::optional<std::uint64_t> nonce_of_blocks(Disk& disk, const std::string& directory, std::uint64_t id,
                                             const HardState& state) {
  BlockStream segment(disk);
  if (id == 0 || !segment.open(directory + "/" + segment_name(id))) return std::nullopt;
  return segment.nonce_of_blocks(id, state.cluster_id);
}

}  // namespace

std::optional<SegmentHeader> restored_segment_header(const SegmentHeader& damaged, const Digest& stated) {
  SegmentHeader header = damaged;
  const SegmentHeader made;
  header.magic = made.magic;
  header.version = made.version;
  header.flags = made.flags;
  header.endian = made.endian;
  header.block_bytes = made.block_bytes;
  std::ranges::copy(made.zero, header.zero);
  const auto finished = [](SegmentHeader found) -> std::optional<SegmentHeader> {
    finish_segment_header(found);
    return segment_header_defect(found) ? std::nullopt : std::optional(found);
  };
  const Digest as_it_is = checksum_of(header);
  if (as_it_is == stated || is_damaged_checksum(damaged.checksum, as_it_is)) return finished(header);
  const auto turned =
      without_flipped_bit(header, sizeof(Digest), offsetof(SegmentHeader, zero), [&](const SegmentHeader& tried) {
        const Digest checksum = checksum_of(tried);
        return checksum == damaged.checksum || checksum == stated;
      });
  return turned ? finished(*turned) : std::nullopt;
}

std::optional<SegmentHeader> derived_segment_header(Disk& disk, const std::string& directory, std::uint64_t id,
                                                    const HardState& state, bool made_up) {
  const auto previous = known_header(disk, directory, id - 1, state);
  const auto next = known_header(disk, directory, id + 1, state);
  auto nonce = nonce_of_blocks(disk, directory, id, state);
  if (nonce && next && next->prev_nonce != *nonce) return std::nullopt;
  if (!nonce && next) nonce = next->prev_nonce;
  if (!nonce && !(made_up && previous)) return std::nullopt;

  SegmentHeader header = previous ? *previous : next.value_or(SegmentHeader{});
  header.cluster_id = state.cluster_id;
  header.replica_id = state.replica_id;
  header.segment_id = id;
  header.prev_nonce = previous ? previous->nonce : nonce_of_blocks(disk, directory, id - 1, state).value_or(0);
  header.nonce = nonce ? *nonce : xxh3_64(object_bytes(header));
  std::uint64_t file_bytes = min_segment_bytes;
  if (BlockStream segment(disk); segment.open(directory + "/" + segment_name(id)))
    file_bytes = std::max(file_bytes, std::uint64_t{round_up_to_block(segment.file_bytes())});
  header.segment_bytes = std::clamp(std::max(header.segment_bytes, file_bytes), min_segment_bytes, max_segment_bytes);
  // The smallest in-flight window lets damage pass for a crash least of all.
  header.max_inflight = std::max(header.max_inflight, 1U);
  header.max_batch_bytes = batch_bytes_limit;
  if (header.max_record_bytes == 0) header.max_record_bytes = batch_bytes_limit;
  finish_segment_header(header);
  return header;
}

Result<void> open_past_header(BlockStream& segment, Disk& disk, const std::string& directory, std::uint64_t id,
                              const HardState& state) {
  if (auto opened = segment.open(directory + "/" + segment_name(id)); !opened) return opened;
  const auto& defect = segment.header_defect();
  if (!defect || defect->incompatible || segment.header_known()) return {};
  if (const auto header = derived_segment_header(disk, directory, id, state)) segment.assume(*header);
  return {};
}

}  // namespace lockstep
