// SPDX-License-Identifier: Apache-2.0
#pragma once

/// What durability costs beside the disk itself: the journal's group commit and its latency for a single record,
/// against a bare io_uring loop that writes and syncs blocks of the same size in a file made the same way: zero-filled,
/// past the page cache. The journal makes the same blocks out of batches, with headers, digests and chain, and they are
/// read back and compared with the batches. One thread.

#include <cstdint>
#include <memory>
#include <string>

#include "base/histogram.hpp"

namespace lockstep::bench {

/// Batches that fill blocks of one size, to be appended to a new journal each time.
class DurableLoad {
 public:
  /// Of `blocks` blocks of `block_bytes`: a multiple of 4096, at least 8192; or 4096, for a single record of 128 bytes.
  DurableLoad(std::uint32_t block_bytes, std::uint32_t blocks);
  ~DurableLoad();
  DurableLoad(const DurableLoad&) = delete;
  DurableLoad& operator=(const DurableLoad&) = delete;

  /// Seconds until all blocks were durable, eight in flight, each submitted when it is appended, and one sync at a
  /// time, which covers all that was written when it began.
  [[nodiscard]] double journal_seconds(const std::string& directory) const;
  [[nodiscard]] double raw_seconds(const std::string& directory) const;

  /// Nanoseconds from a block's append until it was durable, one at a time.
  [[nodiscard]] Histogram journal_latency_ns(const std::string& directory) const;
  [[nodiscard]] Histogram raw_latency_ns(const std::string& directory) const;
  /// The same by one write that is its own sync (RWF_DSYNC).
  [[nodiscard]] Histogram dsync_latency_ns(const std::string& directory) const;

  [[nodiscard]] double bytes() const;

 private:
  struct Blocks;
  std::unique_ptr<Blocks> blocks_;
};

}  // namespace lockstep::bench
