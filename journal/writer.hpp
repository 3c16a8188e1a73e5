// SPDX-License-Identifier: Apache-2.0
#pragma once

/// JournalWriter: appends batches to a recovered journal, up to K blocks in flight, and says which are written and
/// which are durable. Group commit is natural: one sync at a time, each covering all that had been written when it was
/// submitted. The first error of a write or a sync, a short write among them, is final: failure() holds it, neither
/// index moves again, nothing is retried. Which index the node calls committed is the node's business.
///
/// A full segment is ended by a SEAL, durable before the next segment's first block is submitted; next segments are
/// made ahead in the background, and without room can_append() is false: back-pressure, never a write without space.
/// About 1 ms after the last batch became durable a MARK says so on disk, so that later damage to it is not taken for a
/// torn tail.
///
/// One thread, and the only user of its Disk's submitted calls. append() and poll() allocate only where a segment
/// begins. Reads no clock.

#include <algorithm>
#include <functional>
#include <memory>
#include <optional>

#include "journal/recovery.hpp"
#include "journal/segment_file.hpp"
#include "journal/upkeep.hpp"

namespace lockstep {

struct JournalOptions {
  std::uint64_t segment_bytes = 64 << 20;
  std::uint32_t max_inflight = 8;  ///< K
  std::uint32_t max_batch_bytes = 1 << 20;
  std::uint32_t max_record_bytes = 256 << 10;
  std::uint32_t spare_segments = 2;
  std::int64_t mark_after_ns = 1'000'000;
  std::int64_t space_retry_ns = 1'000'000'000;  ///< wait between attempts to make a segment on a full disk
  std::uint8_t build_id[32] = {};               ///< hash of the program, for people who look at the file
};

struct JournalCounters {
  std::uint64_t blocks = 0;
  std::uint64_t bytes = 0;
  std::uint64_t syncs = 0;
  std::uint64_t marks = 0;
  std::uint64_t segments = 0;
};

class JournalWriter {
 public:
  /// Goes on behind what was recovered, in a new segment, which poll() makes: until there is one, can_append() is
  /// false, so a node starts on a full disk too. `schema` is the application's .bfbs (may be empty); it is written
  /// before the first batch of each segment.
  [[nodiscard]] static Result<std::unique_ptr<JournalWriter>> open(Disk& disk, Recovered&& recovered,
                                                                   const JournalOptions& options,
                                                                   std::span<const std::byte> schema);
  JournalWriter(const JournalWriter&) = delete;
  JournalWriter& operator=(const JournalWriter&) = delete;
  ~JournalWriter();

  /// True when append() may be called once: there is room in flight and on disk.
  [[nodiscard]] bool can_append() const;
  /// Takes the next batch. It must follow from the last one, have this journal's schema_id(), and lie in a 4096-aligned
  /// buffer that was padded by pad_for_journal(); header and payload stay valid and unchanged until durable_index()
  /// reaches the batch. A payload whose digest differs from its header's is a failure().
  void append(const BatchView& batch);

  /// What consensus knows committed from now on: each block states it, and nothing up to it is ever taken back.
  void set_commit_index(std::uint64_t index) { commit_index_ = std::max(commit_index_, index); }
  /// Takes back, for a cluster's member, the batches behind `target`, which lost an election: poll() stores that they
  /// may be gone, then a TRUNCATE says so, and batches from target.index + 1 on may be appended once can_append() is
  /// true again. `target` is where batch target.index ended when it was appended. Refuses what was committed, and to go
  /// forward (ErrorCode::usage).
  [[nodiscard]] Result<void> truncate_to(const HistoryPosition& target);
  /// From truncate_to() until the TRUNCATE is durable.
  [[nodiscard]] bool truncating() const { return truncate_target_ || durable_ < truncate_block_; }

  /// Reaps what the disk has done and goes on; call it each loop turn, with the steady time. Returns how much it did.
  int poll(std::int64_t now_ns);
  /// The steady time by which poll() wants to be called although nothing completes; INT64_MAX when there is none.
  [[nodiscard]] std::int64_t deadline_ns() const;

  [[nodiscard]] std::uint64_t appended_index() const { return held_ ? held_->header->index : position_.index; }
  [[nodiscard]] std::uint64_t written_index() const { return written_index_; }
  [[nodiscard]] std::uint64_t durable_index() const { return durable_index_; }
  [[nodiscard]] const std::optional<Error>& failure() const { return failure_; }
  /// Why can_append() is false for lack of space, in an operator's words; nothing when space is there.
  [[nodiscard]] const std::optional<Error>& out_of_space() const { return out_of_space_; }
  [[nodiscard]] std::uint64_t schema_id() const { return schema_id_; }
  /// Cluster, replica, this process' incarnation, and what else was last stored.
  [[nodiscard]] const HardState& hard_state() const { return upkeep_.state(); }
  [[nodiscard]] const JournalCounters& counters() const { return counters_; }

  /// Has the hard state name these snapshots, in the background, once the journal is durable up to the newest of them;
  /// hard_state() shows when that is done. Their files must be durable under their names before the call. A later call
  /// replaces one that is not done yet.
  void store_snapshots(const SnapshotMark& mark) { upkeep_.want_snapshots(mark); }
  /// Removes, in the background, the segments that hold only batches below `keep_from_index`; never one that reaches
  /// behind the previous snapshot the hard state names, nor the one with the last durable batch.
  void prune(std::uint64_t keep_from_index) { upkeep_.want_prune(keep_from_index); }
  /// Says in the hard state, in the background, that this member has all it may have acknowledged: for who has the
  /// leader's proof of it, and no one else.
  void leave_limbo() { upkeep_.want_normal_state(); }
  /// The first batch the journal still holds, or will.
  [[nodiscard]] std::uint64_t first_index() const { return upkeep_.first_index(); }

  /// Makes all that was appended durable and vouched for, then stores the hard state. Blocks; nothing may be appended
  /// afterwards. After a failure() it only waits for what is still in flight, and returns that failure; so it is to be
  /// called in any case. `turn_disk` is called while it waits, for a disk that gets on only when its reactor is turned.
  [[nodiscard]] Result<void> close(const std::function<void()>& turn_disk = {});

 private:
  /// A block in flight: its header's buffer, and what its completion means.
  struct Slot {
    AlignedBuffer block;
    iovec pieces[2] = {};
    std::uint64_t offset = 0;
    std::uint32_t block_no = 0;
    std::uint32_t total_bytes = 0;
    std::uint64_t index = 0;  ///< of the last batch up to and with it
    Digest chain;
    bool written = false;
  };
  struct Segment {
    FileId file = FileId::none;
    SegmentHeader header;
  };
  enum class Stage {
    open,         ///< segment_ takes blocks
    seal_wanted,  ///< it will take its SEAL as soon as a slot is free
    between,      ///< it has its SEAL, or there is none yet: the next spare follows when all is durable
  };

  JournalWriter(Disk& disk, Recovered&& recovered, const JournalOptions& options, std::span<const std::byte> schema);

  [[nodiscard]] Result<void> check_options() const;
  [[nodiscard]] SegmentHeader next_segment_header() const;
  [[nodiscard]] HardState next_hard_state(std::uint64_t newest_segment_id) const;
  void begin_segment(const Segment& segment);

  [[nodiscard]] bool slot_free() const { return submitted_ - durable_ < slots_.size(); }
  [[nodiscard]] bool all_durable() const { return durable_ == submitted_; }
  [[nodiscard]] Slot& slot_of(std::uint64_t block) { return slots_[(block - 1) % slots_.size()]; }
  [[nodiscard]] std::uint64_t schema_block_bytes() const {
    return schema_bytes_ == 0 ? 0 : block_total_bytes(schema_bytes_);
  }
  [[nodiscard]] bool fits(std::uint32_t total_bytes) const;
  void submit_held();
  void submit_batch(const BatchView& batch);
  void submit_schema();
  void submit_control(BlockType type, std::span<const std::byte> payload);
  void submit(BlockHeader& header, std::span<const std::byte> payload);

  int reap(std::int64_t now_ns);
  void finish_write(Slot& slot, std::int64_t result);
  void finish_sync(std::int64_t result, std::int64_t now_ns);
  void finish_spare(std::int64_t now_ns);
  int sync_written();
  int roll();
  int make_spare(std::int64_t now_ns);
  int keep_up();
  int truncate();
  void finish_upkeep();
  int mark_when_idle(std::int64_t now_ns);
  [[nodiscard]] bool mark_wanted() const;
  void fail_with(const std::string& what);

  Disk* disk_;
  DirectoryLock lock_;
  JournalUpkeep upkeep_;
  std::string directory_;
  JournalOptions options_;
  std::uint64_t seed_;

  AlignedBuffer schema_;
  std::size_t schema_bytes_ = 0;
  std::uint64_t schema_id_ = 0;

  Segment segment_;
  Stage stage_ = Stage::between;
  SealBuilder seal_;
  std::uint64_t offset_ = 0;
  std::uint64_t segment_base_ = 0;  ///< submitted_ when the segment began
  Digest last_checksum_;
  bool schema_written_ = false;
  bool vouched_ = true;  ///< the last block is a MARK or a SEAL, or there is none to vouch for

  // Blocks ever submitted, written without a gap, durable without a gap. Block n is in slot (n - 1) % K.
  std::uint64_t submitted_ = 0;
  std::uint64_t written_ = 0;
  std::uint64_t durable_ = 0;
  std::vector<Slot> slots_;
  std::size_t outstanding_ = 0;  ///< submitted calls not reaped yet
  bool sync_running_ = false;
  std::uint64_t sync_covers_ = 0;

  HistoryPosition position_;
  std::optional<BatchView> held_;  ///< appended, but waiting for a segment or a slot
  std::uint64_t commit_index_ = 0;
  std::optional<HistoryPosition> truncate_target_;  ///< asked for, its block not submitted yet
  std::uint64_t truncate_block_ = 0;                ///< the last TRUNCATE's number among the submitted
  std::uint64_t written_index_ = 0;
  std::uint64_t durable_index_ = 0;
  Digest durable_chain_;
  std::int64_t idle_since_ns_ = 0;
  bool closing_ = false;

  std::vector<Segment> spares_;
  SegmentHeader last_made_;           ///< of the segment with the highest id
  bool background_running_ = false;   ///< one task at a time: each may store the hard state
  Segment spare_made_;                ///< by the background task; read when it has completed
  HardState spare_state_;             ///< stored with it
  std::optional<Error> spare_error_;  ///< of the background task
  std::int64_t spare_not_before_ns_ = INT64_MIN;

  std::optional<Error> failure_;
  std::optional<Error> out_of_space_;
  JournalCounters counters_;
};

/// XXH3-64 of a .bfbs; 0 of none.
[[nodiscard]] std::uint64_t schema_id_of(std::span<const std::byte> schema);

}  // namespace lockstep
