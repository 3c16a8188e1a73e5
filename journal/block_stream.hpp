// SPDX-License-Identifier: Apache-2.0
#pragma once

/// BlockStream: the blocks of one segment, in order, out of a file read in big pieces. It judges each block by itself
/// and by the block before it (number, previous checksum); what the blocks mean is its user's business. It only reads,
/// and may do so while a writer appends: what it has not accepted yet it reads again. A read error counts as damage of
/// what could not be read. One thread.

#include <optional>
#include <string>

#include "base/error.hpp"
#include "journal/block.hpp"
#include "journal/disk.hpp"

namespace lockstep {

class BlockStream {
 public:
  explicit BlockStream(Disk& disk) : disk_(&disk) {}
  BlockStream(BlockStream&& other) noexcept;
  BlockStream& operator=(BlockStream&& other) noexcept;
  ~BlockStream() { close(); }

  /// Opens a segment and reads its header. A defect of the header is not an error of this call: see header_defect().
  /// What its checksums prove of a damaged one is restored: header_known() is true then, and header() is what it was.
  [[nodiscard]] Result<void> open(const std::string& path);
  /// Takes `header` for that of the open segment, which has lost its own, and starts at the first block.
  void assume(const SegmentHeader& header);
  void close();

  [[nodiscard]] const SegmentHeader& header() const { return header_; }
  [[nodiscard]] const std::optional<SegmentHeaderDefect>& header_defect() const { return header_defect_; }
  /// Whether header() can be relied on: it is sound, or restored, or was assumed.
  [[nodiscard]] bool header_known() const { return known_ != Known::no; }
  /// It was damaged, and is, bit for bit, what it was made as.
  [[nodiscard]] bool header_restored() const { return known_ == Known::restored; }
  /// Shorter than it was made, as far as that is known.
  [[nodiscard]] bool cut_short() const { return header_known() && file_bytes_ < header_.segment_bytes; }
  [[nodiscard]] const std::string& path() const { return path_; }
  [[nodiscard]] std::uint64_t file_bytes() const { return file_bytes_; }

  /// Examines the block at offset(). The result's spans are valid until the next call of a non-const function.
  [[nodiscard]] BlockExamination examine();
  /// Passes a block that examine() found valid.
  void accept(const BlockExamination& block);
  /// Forgets what is buffered, so that examine() sees what has been written since.
  void refresh();

  [[nodiscard]] std::uint64_t offset() const { return offset_; }
  [[nodiscard]] std::uint32_t next_block_no() const { return next_block_no_; }
  [[nodiscard]] const Digest& last_checksum() const { return last_checksum_; }

  /// What lies at and behind offset(): looked for when examine() refused a block there.
  struct Remainder {
    bool blank = true;                  ///< nothing but zeros
    std::uint32_t highest_block = 0;    ///< number of the highest block whose header verifies; 0 if none
    std::uint64_t highest_durable = 0;  ///< the highest durable_block such headers state
    std::uint64_t highest_index = 0;
  };
  [[nodiscard]] Remainder look_behind();
  /// The nonce in the first block of the file that verifies as one of this segment and cluster, the header unseen.
  [[nodiscard]] std::optional<std::uint64_t> nonce_of_blocks(std::uint64_t segment_id, const ClusterId& cluster_id);
  /// Goes past a refused block to the next one whose header verifies, as if that followed; false when there is none.
  [[nodiscard]] bool resume_behind();

 private:
  static constexpr std::size_t read_ahead_bytes = std::size_t{1} << 20;
  enum class Known { no, sound, restored, assumed };

  void read_header();

  /// Makes `bytes` from `offset` available in the buffer, or as many as the file has; reads `ahead` beyond them.
  std::span<const std::byte> window(std::uint64_t offset, std::size_t bytes, std::size_t ahead = read_ahead_bytes);
  void refill(std::uint64_t offset, std::size_t needed);
  std::size_t read_damaged(std::uint64_t offset, std::span<std::byte> into);

  Disk* disk_;
  FileId file_ = FileId::none;
  std::string path_;
  std::uint64_t file_bytes_ = 0;
  SegmentHeader header_;
  std::optional<SegmentHeaderDefect> header_defect_;
  Known known_ = Known::no;

  AlignedBuffer buffer_;
  std::uint64_t buffered_from_ = 0;
  std::size_t buffered_bytes_ = 0;

  std::uint64_t offset_ = 0;
  std::uint32_t next_block_no_ = 1;
  Digest last_checksum_;
};

}  // namespace lockstep
