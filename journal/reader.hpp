// SPDX-License-Identifier: Apache-2.0
#pragma once

/// JournalReader: the batches of a journal, in order, each verified: its block's checksum, its payload's digest, the
/// chain, and sequence numbers, indexes and times that follow. It never writes and takes no lock, so it works on a live
/// journal too: at its end next() returns nothing and may be called again later. Damage that was once durable is an
/// Error; a torn or ambiguous tail is an end, and tail() says so. A history that was pruned begins later than with
/// batch
/// 1. Batches that a cluster's member took back are not returned; of its live journal, one that is taken back later may
/// have been, and indexes then run back. One thread.

#include <optional>
#include <string>
#include <vector>

#include "journal/block_stream.hpp"
#include "journal/hard_state.hpp"
#include "journal/verdict.hpp"

namespace lockstep {

class JournalReader {
 public:
  /// Starts so that next() first returns batch `from_index`, or the oldest there is for 0: position() is then where the
  /// batch before it ends, or the journal if that is earlier. What is passed over is verified too; damage there is the
  /// first Error of next(). Refuses a directory that is no journal, or whose history begins later
  /// (ErrorCode::incomplete).
  [[nodiscard]] static Result<JournalReader> open(Disk& disk, const std::string& directory,
                                                  std::uint64_t from_index = 1);

  /// The next batch, or nothing at the end. The view is valid until the next call.
  [[nodiscard]] Result<std::optional<BatchView>> next();

  /// After an Error of damage: goes on behind it, at the next block that verifies, whose place in the history is then
  /// taken from itself; false when nothing is behind it. Behind a damaged header that is the segment's first block, and
  /// no batch is lost. For tools that show what is left: between position() at the Error and the next batch, whatever
  /// indexes lack are the damaged range.
  [[nodiscard]] Result<bool> pass_damage();

  /// Where the last batch returned ends, or the one before the first to come.
  [[nodiscard]] const HistoryPosition& position() const { return position_; }
  /// The .bfbs a batch's schema_id names; known from the first batch that has it. Empty for one that was not met.
  [[nodiscard]] std::span<const std::byte> schema(std::uint64_t schema_id) const;
  /// What is wrong behind the last batch, when next() has returned nothing and the end is not clean.
  [[nodiscard]] const std::optional<Finding>& tail() const { return tail_; }
  [[nodiscard]] const HardState& hard_state() const { return hard_state_; }

 private:
  struct Schema {
    std::uint64_t id = 0;
    std::vector<std::byte> bytes;
  };

  /// Batches before it, above last_index, are taken back.
  struct Truncate {
    std::uint64_t segment_id = 0;
    std::uint64_t offset = 0;
    std::uint64_t last_index = 0;
  };

  JournalReader(Disk& disk, std::string directory, const HardState& hard_state, std::uint64_t from_index)
      : disk_(&disk),
        directory_(std::move(directory)),
        hard_state_(hard_state),
        from_index_(from_index),
        segment_(disk) {}

  [[nodiscard]] Result<void> find_start();
  /// What a segment's first block follows from; nothing when there is none that tells.
  [[nodiscard]] Result<std::optional<HistoryPosition>> start_of(std::uint64_t id);
  [[nodiscard]] Result<void> pass_to_start();
  [[nodiscard]] Result<void> look_ahead_for_truncates();
  /// Whether a TRUNCATE behind the open segment's `offset` takes batch `index` back.
  [[nodiscard]] bool is_taken_back(std::uint64_t offset, std::uint64_t index) const;
  [[nodiscard]] Result<std::optional<BatchView>> next_batch();
  [[nodiscard]] Result<bool> open_segment(std::uint64_t id);
  [[nodiscard]] Result<bool> next_segment();
  [[nodiscard]] Result<bool> at_end(const BlockExamination& bad);
  [[nodiscard]] Result<bool> later_segment_has_blocks() const;
  [[nodiscard]] Error damage(std::string_view cause) const;
  void keep_schema(const BlockExamination& block);

  Disk* disk_;
  std::string directory_;
  HardState hard_state_;
  std::uint64_t from_index_;
  BlockStream segment_;
  std::uint64_t segment_id_ = 0;
  bool sealed_ = true;               ///< the open segment's SEAL has been passed; or none is open yet
  std::uint64_t judged_offset_ = 0;  ///< where the end was last judged: judging reads the rest of the segment
  bool begins_history_ = false;      ///< the open segment, or the next, is the oldest of a pruned journal
  std::uint64_t excused_id_ = 0;     ///< the segment whose damaged header has been told of
  std::optional<Error> met_;         ///< on the way to where reading starts: next() tells of it
  bool gap_ = false;                 ///< the last error was of a sound block that does not follow
  bool position_known_ = false;
  HistoryPosition position_;
  BatchHeader batch_;
  std::vector<Schema> schemas_;
  std::vector<Truncate> truncates_;  ///< from where reading starts on
  std::optional<Finding> tail_;
};

}  // namespace lockstep
