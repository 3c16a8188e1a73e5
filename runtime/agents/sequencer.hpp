// SPDX-License-Identifier: Apache-2.0
#pragma once

/// Sequencer: the one place where order and time enter a history. It owns the sequence number and the stamped time,
/// packs records into the open batch, laid out as the journal writes it, and seals batches.
///
/// Sealing is natural: a batch is sealed when it has records and fewer than `seal_depth` sealed batches await their
/// commit, or when the next record does not fit. So an idle node seals at once, a busy one fills batches while the disk
/// works, and no timer adds latency.
///
/// Stamped time is max(arrival, the last stamp): it never runs back, not behind a recovered history either. A tick, a
/// batch without records, is sealed when an executor has mail carried over or a timer due and everything sealed has
/// been executed; otherwise an idle node stays silent. A durable session that has been silent for too long is closed by
/// a record of the sequencer's own.
///
/// A single perimeter that runs on the sequencer's thread packs its records directly, through claim() and commit().
/// Perimeters on other threads pass theirs over one ByteRing each (a RecordHeader and the payload per frame); rings are
/// merged in the order they were added, frame by frame in rounds.
///
/// One thread. It does not check what it packs: that is the perimeter's work.

#include <atomic>
#include <cstdint>
#include <span>
#include <vector>

#include "journal/batch.hpp"
#include "runtime/agents/agent.hpp"
#include "runtime/agents/batch_pool.hpp"
#include "runtime/agents/session_directory.hpp"
#include "runtime/agents/snapshot_control.hpp"
#include "runtime/ring/byte_ring.hpp"

namespace lockstep {

/// When an executor wants time to pass: the stamped time of its earliest timer, `mail_carried` when messages wait for
/// the next batch, or `nothing_due`. The executor stores it (release) before it publishes its cursor; the sequencer
/// loads it (acquire) once that cursor has reached the last sealed batch.
struct alignas(128) NextDue {
  static constexpr std::int64_t nothing_due = INT64_MAX;
  static constexpr std::int64_t mail_carried = INT64_MIN;
  std::atomic<std::int64_t> time_ns{nothing_due};
};

/// Kind of a frame in a perimeter's ring that was claimed and then refused; it is passed over.
inline constexpr RecordKind void_record{0};

class Sequencer final : public Agent {
 public:
  struct Options {
    std::uint32_t seal_depth = 2;  ///< sealed batches that may await their commit before records are held back to fill
    std::uint64_t schema_id = 0;   ///< of the application; part of every batch
    std::int64_t session_expiry_ns = 0;        ///< as in genesis; 0: sessions do not expire
    SnapshotControl* snapshots = nullptr;      ///< who asks for snapshots; null: nobody
    std::uint64_t checkpoint_interval = 1024;  ///< of the history: snapshots are taken at checkpoints only
  };

  /// Goes on behind `end`; the pool's cursors must stand at end.index.
  Sequencer(BatchPool& pool, const HistoryPosition& end, const Options& options);

  /// Records of a perimeter on another thread. Before the first do_work().
  void add_inbound(ByteRing& ring) { inbound_.push_back(&ring); }
  /// One per executor. Before the first do_work().
  void add_due(const NextDue& due) { due_.push_back(&due); }

  /// A session that the history knows, last heard of at `last_activity_ns`. Before the first do_work().
  void add_session(std::uint64_t session, std::int64_t last_activity_ns) { sessions_.touch(session, last_activity_ns); }

  /// Room in the open batch for a record's payload, on a multiple of 16; nullptr when every slab is in use, which is
  /// back-pressure: nothing is lost, try again in a later turn. At most one claim is open; one that is not committed is
  /// void at the next claim. `payload_bytes` is at most max_payload_bytes().
  [[nodiscard]] std::byte* claim(std::size_t payload_bytes);
  /// Stamps the claimed record: seq and timestamp are the sequencer's, everything else (check included) the header's.
  void commit(const RecordHeader& header, std::int64_t arrival_ns);

  /// The first record of every history; only when the history is empty and nothing has been packed.
  void append_genesis(std::span<const std::byte> payload, std::int64_t now_ns);

  [[nodiscard]] std::size_t max_payload_bytes() const { return pool_.max_batch_bytes() - sizeof(RecordHeader); }
  [[nodiscard]] std::uint64_t last_seq() const { return seq_; }
  /// Whether records wait in the open batch.
  [[nodiscard]] bool has_open_records() const { return record_count_ != 0; }

  [[nodiscard]] std::string_view name() const override { return "sequencer"; }
  int do_work(const Now& now) override;
  [[nodiscard]] std::int64_t deadline_ns() const override { return deadline_ns_; }

 private:
  static constexpr std::uint32_t nothing_claimed = UINT32_MAX;

  [[nodiscard]] bool open_batch();
  void seal();
  [[nodiscard]] bool takes_snapshot(const BatchHeader& batch);
  int merge_inbound();
  [[nodiscard]] bool take_frame(ByteRing& ring);
  int stamp_tick(const Now& now);
  void note_session(const RecordHeader& header);
  int close_silent(const Now& now);
  void want_call_at(std::int64_t real_ns, const Now& now);
  [[nodiscard]] std::int64_t earliest_due_ns() const;

  BatchPool& pool_;
  Options options_;

  // The end of the history as packed so far; the open batch is index_ + 1.
  std::uint64_t index_;
  std::uint64_t seq_;
  std::int64_t time_ns_;
  Digest chain_;

  // The open batch; base_ is null when there is none.
  std::byte* base_ = nullptr;
  std::uint32_t used_bytes_ = 0;
  std::uint32_t claimed_bytes_ = nothing_claimed;  // of payload
  std::uint32_t record_count_ = 0;
  std::int64_t first_time_ns_ = 0;

  std::vector<ByteRing*> inbound_;
  std::vector<const NextDue*> due_;
  SessionDirectory sessions_;
  bool started_ = false;
  std::int64_t deadline_ns_ = INT64_MAX;
};

}  // namespace lockstep
