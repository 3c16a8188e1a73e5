// SPDX-License-Identifier: Apache-2.0
#pragma once

/// SegmentBuilder: writes a whole segment's file, block by block and SEAL included, from what others hold: for repair
/// and for slices, where nothing is in flight and each block may state that all before it is durable. The file is no
/// longer than its blocks, and has its name only by its user's doing. One thread, blocking.

#include <span>
#include <string>

#include "base/error.hpp"
#include "journal/block.hpp"
#include "journal/disk.hpp"
#include "journal/segment_file.hpp"

namespace lockstep {

class SegmentBuilder {
 public:
  SegmentBuilder(Disk& disk, std::string path, const SegmentHeader& header, const HistoryPosition& before)
      : disk_(disk), path_(std::move(path)), header_(header), position_(before) {
    seal_.start(header, before);
  }
  ~SegmentBuilder() {
    if (file_ != FileId::none) disk_.close(file_);
  }
  SegmentBuilder(const SegmentBuilder&) = delete;
  SegmentBuilder& operator=(const SegmentBuilder&) = delete;

  Result<void> start();
  /// `header` has the block's meaning; where it lies is filled in here.
  Result<void> add(BlockHeader header, std::span<const std::byte> payload);
  Result<void> finish();
  [[nodiscard]] std::uint64_t room() const { return header_.segment_bytes - offset_ - seal_block_bytes; }
  [[nodiscard]] const HistoryPosition& position() const { return position_; }

 private:
  Disk& disk_;
  std::string path_;
  FileId file_ = FileId::none;
  SegmentHeader header_;
  HistoryPosition position_;
  SealBuilder seal_;
  std::uint64_t offset_ = 0;
  std::uint32_t blocks_ = 0;
  Digest last_checksum_;
};

}  // namespace lockstep
