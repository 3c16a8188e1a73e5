// SPDX-License-Identifier: Apache-2.0
#pragma once

/// Making a segment's file, and the SEAL that ends it. Blocking; off the write path.

#include <string>

#include "base/error.hpp"
#include "journal/block.hpp"
#include "journal/disk.hpp"

namespace lockstep {

/// Makes `header.segment_id`'s file: zero-filled, its header in it, durable under its name, open for direct writing and
/// locked: a write in flight keeps the file, and so its lock, when the process is killed, so the next process sees that
/// it has not landed yet. Finishes the header's checksum. On an Error what was half made is removed again.
[[nodiscard]] Result<FileId> make_segment(Disk& disk, const std::string& directory, SegmentHeader& header);

/// Copies a segment's file, as it is, to its name with ".bad" behind it, or ".2.bad" and so on: older copies stay, and
/// what is kept already is not copied again. Durable when this returns.
[[nodiscard]] Result<void> keep_bad_copy(Disk& disk, const std::string& directory, std::uint64_t segment_id);

/// Gathers what a SEAL says while a segment grows.
class SealBuilder {
 public:
  void start(const SegmentHeader& segment, const HistoryPosition& before);
  void add_batch(const BatchHeader& batch, std::uint64_t offset);
  /// The history ends at `position` again: batches behind it are taken back.
  void go_back(const HistoryPosition& position);
  [[nodiscard]] std::uint64_t batches() const { return summary_.batches; }
  /// The SEAL's payload; valid until the next call.
  [[nodiscard]] std::span<const std::byte> payload();

 private:
  SealSummary summary_;
  SealEntry entries_[max_seal_entries];
  std::uint64_t stride_ = 0;
  std::uint64_t next_entry_at_ = 0;
  alignas(16) std::byte bytes_[sizeof(SealSummary) + sizeof entries_];
};

/// Fields of a block that is no batch: the position reached, and where it lies.
[[nodiscard]] BlockHeader control_header(BlockType type, const SegmentHeader& segment, const HistoryPosition& position);

}  // namespace lockstep
