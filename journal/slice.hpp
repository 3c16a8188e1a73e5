// SPDX-License-Identifier: Apache-2.0
#pragma once

/// Slice: a part of a history as a journal of its own, in a new directory, that starts and replays like any other: the
/// batches with the chain they had, the snapshot they go on from, and the roots recorded for them. The source is only
/// read, and may be live. One thread, blocking.

#include <cstdint>
#include <optional>
#include <string>

#include "base/error.hpp"
#include "journal/batch.hpp"
#include "journal/disk.hpp"

namespace lockstep {

struct SliceRequest {
  std::string from;
  std::string to;               ///< made; refused when it holds anything
  std::uint64_t first_seq = 1;  ///< whole batches are taken: the one that holds this, and all up to
  std::uint64_t last_seq = UINT64_MAX;
  bool with_snapshot = false;  ///< begin behind the newest snapshot before first_seq, which comes along
};

struct Slice {
  HistoryPosition before;  ///< what its first batch follows from
  HistoryPosition last;
  std::optional<std::uint64_t> snapshot;  ///< the batch it is of
  std::uint64_t segments = 0;
  std::uint64_t skips_left_out = 0;  ///< orders to pass over a message of the slice that stand behind its end
};

/// Refuses a range that has no batch, and one that begins later than the history without a snapshot before it
/// (ErrorCode::usage): such a slice could not be executed.
[[nodiscard]] Result<Slice> cut_slice(Disk& disk, const SliceRequest& request);

}  // namespace lockstep
