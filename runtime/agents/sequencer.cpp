// SPDX-License-Identifier: Apache-2.0
#include "runtime/agents/sequencer.hpp"

#include <algorithm>
#include <cstring>

#include "base/assert.hpp"
#include "base/prefetch.hpp"
#include "control_generated.h"
#include "journal/format.hpp"
#include "runtime/agents/checkpoint.hpp"
#include "runtime/agents/frames.hpp"

namespace lockstep {
namespace {

/// What the journal fills a payload's last block with (its reader verifies it).
constexpr int block_padding_byte = 0xA5;
/// Frames taken from one ring before the others get their turn again.
constexpr int frames_per_round = 64;

}  // namespace

Sequencer::Sequencer(BatchPool& pool, const HistoryPosition& end, const Options& options)
    : pool_(pool),
      options_(options),
      index_(end.index),
      seq_(end.seq),
      time_ns_(end.time_ns),
      chain_(end.chain),
      sessions_(options.session_expiry_ns) {
  LOCKSTEP_ASSERT(pool.sealed() == end.index, "the pool does not start where the history ends");
  LOCKSTEP_ASSERT(options.seal_depth != 0, "nothing would ever be sealed");
}

std::byte* Sequencer::claim(std::size_t payload_bytes) {
  LOCKSTEP_ASSERT(payload_bytes <= max_payload_bytes(), "a record larger than a batch reached the sequencer");
  const auto bytes = static_cast<std::uint32_t>(record_bytes(payload_bytes));
  if (base_ != nullptr && used_bytes_ + bytes > pool_.max_batch_bytes()) seal();
  if (base_ == nullptr && !open_batch()) return nullptr;
  claimed_bytes_ = static_cast<std::uint32_t>(payload_bytes);
  std::memset(base_ + used_bytes_ + bytes - record_alignment, 0, record_alignment);  // the padding is in there
  return base_ + used_bytes_ + sizeof(RecordHeader);
}

void Sequencer::commit(const RecordHeader& header, std::int64_t arrival_ns) {
  LOCKSTEP_ASSERT(claimed_bytes_ == header.length, "a record was committed that was not claimed");
  time_ns_ = std::max(time_ns_, arrival_ns);
  auto* const record = reinterpret_cast<RecordHeader*>(base_ + used_bytes_);
  *record = header;
  record->seq = ++seq_;
  record->timestamp_ns = time_ns_;
  if (record_count_++ == 0) first_time_ns_ = time_ns_;
  used_bytes_ += static_cast<std::uint32_t>(record_bytes(header.length));
  claimed_bytes_ = nothing_claimed;
  note_session(*record);
}

void Sequencer::note_session(const RecordHeader& record) {
  switch (record.kind) {
    case RecordKind::message:
      if (is_durable(record.session)) sessions_.touch(record.session, record.timestamp_ns);
      break;
    case RecordKind::session_open:
      sessions_.touch(record.session != 0 ? record.session : record.seq, record.timestamp_ns);
      break;
    case RecordKind::session_close:
      sessions_.remove(record.session);
      break;
    case RecordKind::genesis:
    case RecordKind::skip:
      break;
  }
}

void Sequencer::append_genesis(std::span<const std::byte> payload, std::int64_t now_ns) {
  LOCKSTEP_ASSERT(seq_ == 0 && index_ == 0, "genesis must be the first record of a history");
  std::byte* const at = claim(payload.size());
  LOCKSTEP_ASSERT(at != nullptr, "an empty pool has no slab for genesis");
  std::memcpy(at, payload.data(), payload.size());
  RecordHeader header;
  header.kind = RecordKind::genesis;
  header.length = static_cast<std::uint32_t>(payload.size());
  header.check = record_check(header, payload);
  commit(header, now_ns);
}

bool Sequencer::open_batch() {
  if (!pool_.can_open(index_ + 1)) return false;
  base_ = pool_.payload(index_ + 1);
  used_bytes_ = 0;
  record_count_ = 0;
  return true;
}

void Sequencer::seal() {
  const std::uint32_t padding = -used_bytes_ & 4095U;
  std::memset(base_ + used_bytes_, block_padding_byte, padding);
  const HistoryPosition before{index_, seq_ - record_count_, time_ns_, chain_};
  const BatchHeader header = seal_batch(before, {.payload = {base_, used_bytes_},
                                                 .record_count = record_count_,
                                                 .first_time_ns = record_count_ == 0 ? time_ns_ : first_time_ns_,
                                                 .last_time_ns = time_ns_,
                                                 .schema_id = options_.schema_id});
  pool_.header(++index_) = header;
  chain_ = header.chain;
  const bool wanted = options_.snapshots != nullptr && takes_snapshot(header);
  // It is seldom another than a lap ago: not written, the line stays with the executors, too.
  if (bool& flag = pool_.snapshot_wanted(index_); flag != wanted) flag = wanted;
  base_ = nullptr;
  record_count_ = 0;
  pool_.publish_sealed(index_);
  pool_.prefetch(index_ + 1);
}

/// It alone decides at which checkpoint a snapshot is taken: the executors see it with the batch.
bool Sequencer::takes_snapshot(const BatchHeader& batch) {
  SnapshotControl& control = *options_.snapshots;
  const std::uint64_t sealed = control.sealed_bytes.load(std::memory_order_relaxed);
  control.sealed_bytes.store(sealed + block_total_bytes(batch.payload_bytes), std::memory_order_relaxed);
  if (!is_checkpoint(batch.first_seq, batch.record_count, options_.checkpoint_interval)) return false;
  // Pairs with the agent's release.
  if (!control.wanted.load(std::memory_order_acquire)) return false;
  control.wanted.store(false, std::memory_order_relaxed);
  return true;
}

int Sequencer::do_work(const Now& now) {
  if (!started_) sessions_.start(now.real_ns);
  started_ = true;
  deadline_ns_ = INT64_MAX;
  int done = merge_inbound() + close_silent(now);
  if (record_count_ != 0) {
    if (index_ - pool_.committed().read() < options_.seal_depth) {
      seal();
      ++done;
    }
    return done;
  }
  return done + stamp_tick(now);
}

int Sequencer::merge_inbound() {
  int total = 0;
  for (int round = -1; round != 0;) {
    round = 0;
    for (ByteRing* ring : inbound_)
      for (int i = 0; i != frames_per_round && take_frame(*ring); ++i) ++round;
    total += round;
    // A batch is worth sealing before more is merged: the journal may be waiting.
    if (record_count_ != 0 && index_ - pool_.committed().read() < options_.seal_depth) break;
  }
  for (ByteRing* ring : inbound_) ring->flush();
  return total;
}

bool Sequencer::take_frame(ByteRing& ring) {
  const std::span<const std::byte> frame = ring.peek();
  if (frame.empty()) return false;
  RecordHeader header;
  std::memcpy(&header, frame.data(), sizeof header);
  if (header.kind == void_record) {
    ring.release();
    return true;
  }
  std::byte* const payload = claim(header.length);
  if (payload == nullptr) return false;
  std::memcpy(payload, frame.data() + sizeof header, header.length);
  commit(header, header.timestamp_ns);
  ring.release();
  return true;
}

std::int64_t Sequencer::earliest_due_ns() const {
  std::int64_t earliest = NextDue::nothing_due;
  // Acquire pairs with the executor's store; its cursor was read before, so the value is of the last sealed batch.
  for (const NextDue* due : due_) earliest = std::min(earliest, due->time_ns.load(std::memory_order_acquire));
  return earliest;
}

int Sequencer::close_silent(const Now& now) {
  int closed = 0;
  while (const auto silent = sessions_.find_silent(now.real_ns)) {
    flatbuffers::FlatBufferBuilder fbb;
    fbb.Finish(control::CreateSessionClose(fbb, control::CloseReason::expired, silent->last_activity_ns));
    const auto payload = std::as_bytes(std::span(fbb.GetBufferPointer(), fbb.GetSize()));
    std::byte* const at = claim(payload.size());
    if (at == nullptr) return closed;  // the turn that has a slab again
    std::memcpy(at, payload.data(), payload.size());
    RecordHeader header;
    header.kind = RecordKind::session_close;
    header.length = static_cast<std::uint32_t>(payload.size());
    header.session = silent->session;
    header.check = record_check(header, payload);
    commit(header, now.real_ns);
    ++closed;
  }
  want_call_at(sessions_.next_expiry_ns(), now);
  return closed;
}

void Sequencer::want_call_at(std::int64_t real_ns, const Now& now) {
  if (real_ns == INT64_MAX) return;
  deadline_ns_ = std::min(deadline_ns_, now.steady_ns + (real_ns - now.real_ns));
}

int Sequencer::stamp_tick(const Now& now) {
  // Until the last sealed batch is executed, what executors say is due may be what that batch is about to serve.
  if (due_.empty() || pool_.executed_by_all() != index_) return 0;
  const std::int64_t due_ns = earliest_due_ns();
  if (due_ns == NextDue::nothing_due) return 0;
  const std::int64_t stamp_ns = std::max(time_ns_, now.real_ns);
  if (due_ns > stamp_ns) {
    want_call_at(due_ns, now);
    return 0;
  }
  if (base_ == nullptr && !open_batch()) return 0;
  time_ns_ = stamp_ns;
  seal();
  return 1;
}

}  // namespace lockstep
