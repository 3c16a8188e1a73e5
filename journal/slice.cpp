// SPDX-License-Identifier: Apache-2.0
#include "journal/slice.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <memory>

#include "journal/directory.hpp"
#include "journal/file_copy.hpp"
#include "journal/hash_log.hpp"
#include "journal/reader.hpp"
#include "journal/segment_builder.hpp"
#include "journal/skips.hpp"
#include "journal/snapshots.hpp"

namespace lockstep {
namespace {

constexpr std::uint64_t slice_segment_bytes = 64 << 20;

class Cut {
 public:
  Cut(Disk& disk, const SliceRequest& request) : disk_(disk), request_(request) {}
  Result<Slice> run();

 private:
  Result<void> make_directory();
  Result<void> fill_directory();
  Result<void> choose_start();
  Result<void> take_snapshot();
  Result<void> write_batches();
  Result<void> begin_segment(std::uint64_t schema_id);
  Result<void> end_segment();
  Result<void> copy_roots();
  Result<void> count_skip(const BatchView& batch);
  Result<void> write_hard_state();

  Disk& disk_;
  const SliceRequest& request_;
  std::optional<JournalReader> reader_;
  std::optional<SnapshotHeader> snapshot_;
  Digest snapshot_digest_;
  std::uint64_t oldest_segment_id_ = 1;
  SegmentHeader header_;         ///< of the last segment begun
  std::uint64_t schema_id_ = 0;  ///< of its batches
  std::unique_ptr<SegmentBuilder> segment_;
  HistoryPosition position_;
  bool has_skips_ = false;  ///< a hard state restored from before the first skip does not know of it
  Slice slice_;
};

Result<void> Cut::make_directory() {
  if (auto made = make_data_directory(disk_, request_.to); !made) return made;
  const auto names = disk_.list(request_.to);
  if (!names) return std::unexpected(names.error());
  if (!names->empty()) return fail(ErrorCode::usage, fmt::format("{} is not empty; name a new directory", request_.to));
  return {};
}

/// The newest sound snapshot that was taken before the first batch wanted.
Result<void> Cut::take_snapshot() {
  const auto found = list_snapshots(disk_, request_.from);
  if (!found) return std::unexpected(found.error());
  for (const std::uint64_t index : *found) {
    const std::string path = request_.from + "/" + snapshot_name(index);
    auto snapshot = SnapshotReader::open(disk_, path);
    if (!snapshot || snapshot->header().seq >= request_.first_seq || !verify_snapshot(disk_, path)) continue;
    auto reader = JournalReader::open(disk_, request_.from, index + 1);
    if (!reader || reader->position().chain != snapshot->header().chain) continue;
    snapshot_ = snapshot->header();
    snapshot_digest_ = snapshot->digest();
    reader_.emplace(std::move(*reader));
    return {};
  }
  return {};
}

Result<void> Cut::choose_start() {
  if (request_.with_snapshot)
    if (auto taken = take_snapshot(); !taken) return taken;
  if (!snapshot_) {
    auto reader = JournalReader::open(disk_, request_.from, 0);
    if (!reader) return std::unexpected(reader.error());
    reader_.emplace(std::move(*reader));
  }
  const bool from_the_first = reader_->hard_state().oldest_segment_id == 1;
  if (snapshot_ || (from_the_first && request_.first_seq <= 1)) return {};
  if (!request_.with_snapshot)
    return fail(ErrorCode::usage, fmt::format("a slice from seq {} on needs the state before it: add --with-snapshot, "
                                              "or cut from seq 1",
                                              request_.first_seq));
  if (from_the_first) return {};
  return fail(ErrorCode::incomplete, fmt::format("{} has no sound snapshot before seq {}, and what is before it was "
                                                 "pruned",
                                                 request_.from, request_.first_seq));
}

Result<void> Cut::begin_segment(std::uint64_t schema_id) {
  schema_id_ = schema_id;
  const HardState& state = reader_->hard_state();
  header_.cluster_id = state.cluster_id;
  header_.replica_id = state.replica_id;
  header_.segment_id = oldest_segment_id_ + slice_.segments++;
  header_.prev_nonce = header_.nonce;
  header_.nonce = xxh3_64(object_bytes(position_.chain), header_.segment_id);
  header_.segment_bytes = slice_segment_bytes;
  header_.max_inflight = 1;
  header_.max_batch_bytes = batch_bytes_limit;
  header_.max_record_bytes = batch_bytes_limit;
  header_.incarnation = state.incarnation;
  header_.created_ns = position_.time_ns;
  finish_segment_header(header_);
  segment_ =
      std::make_unique<SegmentBuilder>(disk_, request_.to + "/" + segment_name(header_.segment_id), header_, position_);
  if (auto started = segment_->start(); !started) return started;
  const auto schema = reader_->schema(schema_id);
  if (schema.empty()) return {};
  BlockHeader block = control_header(BlockType::schema, header_, position_);
  block.schema_id = schema_id;
  return segment_->add(block, schema);
}

Result<void> Cut::end_segment() {
  if (segment_ == nullptr) return {};
  auto finished = segment_->finish();
  segment_.reset();
  return finished;
}

Result<void> Cut::count_skip(const BatchView& batch) {
  RecordCursor records(batch.payload);
  while (const auto record = records.next())
    if (record->header->kind == RecordKind::skip && record->header->key > slice_.before.seq &&
        record->header->key <= position_.seq)
      ++slice_.skips_left_out;
  return {};
}

Result<void> Cut::write_batches() {
  position_ = reader_->position();
  slice_.before = position_;
  has_skips_ = (reader_->hard_state().flags & hard_state_has_skips) != 0;
  bool ended = false;
  for (;;) {
    const auto batch = reader_->next();
    if (!batch) return std::unexpected(batch.error());
    if (!*batch) break;
    const BatchHeader& header = *(*batch)->header;
    ended = ended || header.first_seq > request_.last_seq;
    if (ended && !has_skips_) break;
    if (ended) {
      if (auto counted = count_skip(**batch); !counted) return counted;
      continue;
    }
    const bool full = segment_ != nullptr && segment_->room() < block_total_bytes(header.payload_bytes);
    if (full || header.schema_id != schema_id_)
      if (auto finished = end_segment(); !finished) return finished;
    if (segment_ == nullptr)
      if (auto begun = begin_segment(header.schema_id); !begun) return begun;
    if (auto added = segment_->add(batch_block(header), (*batch)->payload); !added) return added;
    if (is_skip(**batch)) has_skips_ = true;
    position_ = position_after(header);
  }
  if (position_.seq < request_.first_seq)
    return fail(ErrorCode::usage, fmt::format("{} has no batch of seq {} or behind; its last is {}", request_.from,
                                              request_.first_seq, reader_->position().seq));
  slice_.last = position_;
  return end_segment();
}

/// What the live run came to, so that a replay of the slice has something to be compared with.
Result<void> Cut::copy_roots() {
  const HardState& state = reader_->hard_state();
  const auto recorded = recorded_entries(disk_, request_.from, state.cluster_id, state.replica_id, slice_.last.index);
  if (!recorded) return std::unexpected(recorded.error());
  if (recorded->empty()) return {};
  auto log = HashLog::open(disk_, request_.to, state.cluster_id, state.replica_id, slice_.last.index);
  if (!log) return std::unexpected(log.error());
  for (const HashEntry& entry : *recorded)
    if (entry.index >= slice_.before.index && entry.index <= slice_.last.index)
      if (auto added = log->append(entry); !added) return added;
  return log->sync();
}

Result<void> Cut::write_hard_state() {
  const HardState& source = reader_->hard_state();
  HardState state;
  state.cluster_id = source.cluster_id;
  state.replica_id = source.replica_id;
  state.flags = source.flags;
  if (has_skips_) state.flags |= hard_state_has_skips;
  state.incarnation = source.incarnation;
  state.oldest_segment_id = oldest_segment_id_;
  state.newest_segment_id = header_.segment_id;
  state.durable_index = slice_.last.index;
  state.durable_chain = slice_.last.chain;
  if (snapshot_) {
    state.snapshot_index = snapshot_->index;
    state.snapshot_term = snapshot_->term;
    state.snapshot_chain = snapshot_->chain;
    state.snapshot_digest = snapshot_digest_;
    slice_.snapshot = snapshot_->index;
  }
  return HardStateFile::create(disk_, request_.to, state);
}

Result<void> Cut::fill_directory() {
  if (auto written = write_batches(); !written) return written;
  if (snapshot_) {
    const std::string name = snapshot_name(snapshot_->index);
    if (auto copied = copy_file(disk_, request_.from + "/" + name, request_.to, name); !copied) return copied;
  }
  if (auto copied = copy_roots(); !copied) return copied;
  // Last, when all else is durable under its name: a directory without it is no journal.
  if (auto synced = disk_.sync_directory(request_.to); !synced) return synced;
  return write_hard_state();
}

Result<Slice> Cut::run() {
  if (auto chosen = choose_start(); !chosen) return std::unexpected(chosen.error());
  DirectoriesMade directories(disk_, request_.to);
  if (auto made = make_directory(); !made) return std::unexpected(made.error());
  oldest_segment_id_ = reader_->position().index == 0 ? 1 : 2;  // 1 would say that nothing is before it
  auto filled = fill_directory();
  if (filled) {
    directories.keep();
    return slice_;
  }
  segment_.reset();
  clear_data_directory(disk_, request_.to);
  return std::unexpected(filled.error());
}

}  // namespace

Result<Slice> cut_slice(Disk& disk, const SliceRequest& request) {
  return Cut(disk, request).run();
}

}  // namespace lockstep
