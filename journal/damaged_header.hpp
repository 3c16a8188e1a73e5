// SPDX-License-Identifier: Apache-2.0
#pragma once

/// A segment's header that does not verify: what it was. Restored, bit for bit, when its checksum (its own, or the copy
/// in the first block) proves it; else derived from the segment's blocks and from the segments beside it, which is
/// enough to read the blocks by. Reads only. One thread, blocking.

#include <optional>
#include <string>

#include "base/error.hpp"
#include "journal/block_stream.hpp"
#include "journal/hard_state.hpp"

namespace lockstep {

/// The header that `damaged` was, when a checksum of 128 bits says so: after one flipped bit anywhere, or any change of
/// what is the same in each header. `stated` is what the first block has as the checksum of what is before it.
[[nodiscard]] std::optional<SegmentHeader> restored_segment_header(const SegmentHeader& damaged, const Digest& stated);

/// A header that segment `id` may have in place of a lost one. Without `made_up`, only when the nonce, which says what
/// blocks are the segment's, can be known.
[[nodiscard]] std::optional<SegmentHeader> derived_segment_header(Disk& disk, const std::string& directory,
                                                                  std::uint64_t id, const HardState& state,
                                                                  bool made_up = false);

/// Opens a segment so that its blocks can be read although its header may not verify: header_known() says whether they
/// can, header_defect() what is wrong.
[[nodiscard]] Result<void> open_past_header(BlockStream& segment, Disk& disk, const std::string& directory,
                                            std::uint64_t id, const HardState& state);

}  // namespace lockstep
