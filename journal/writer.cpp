// SPDX-License-Identifier: Apache-2.0
#include "journal/writer.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <system_error>
#include <thread>
#include <utility>

#include "base/assert.hpp"
#include "journal/directory.hpp"

namespace lockstep {
namespace {

// Tokens of the submitted calls; a write's token is its slot's number.
constexpr std::uint64_t sync_token = max_inflight_limit;
constexpr std::uint64_t spare_token = max_inflight_limit + 1;
constexpr std::uint64_t upkeep_token = max_inflight_limit + 2;

std::string reason_of(std::int64_t result, std::uint32_t expected) {
  if (result >= 0) return fmt::format("only {} of {} bytes were written", result, expected);
  const int error = static_cast<int>(-result);
  return fmt::format("{} (errno {})", std::generic_category().message(error), error);
}

}  // namespace

std::uint64_t schema_id_of(std::span<const std::byte> schema) {
  return schema.empty() ? 0 : xxh3_64(schema);
}

JournalWriter::JournalWriter(Disk& disk, Recovered&& recovered, const JournalOptions& options,
                             std::span<const std::byte> schema)
    : disk_(&disk),
      lock_(std::move(recovered.lock)),
      upkeep_(std::move(recovered.hard_state), recovered.directory, std::move(recovered.segments)),
      directory_(std::move(recovered.directory)),
      options_(options),
      seed_(recovered.seed),
      schema_(schema.size()),
      schema_bytes_(schema.size()),
      schema_id_(schema_id_of(schema)),
      position_(recovered.position),
      written_index_(recovered.position.index),
      durable_index_(recovered.position.index),
      durable_chain_(recovered.position.chain) {
  if (!schema.empty()) std::memcpy(schema_.data(), schema.data(), schema.size());
  pad_for_journal(schema_.span(), schema_bytes_);
  last_made_.segment_id = recovered.last_segment_id;
  last_made_.nonce = recovered.last_nonce;
}

Result<std::unique_ptr<JournalWriter>> JournalWriter::open(Disk& disk, Recovered&& recovered,
                                                           const JournalOptions& options,
                                                           std::span<const std::byte> schema) {
  if (!recovered.holes.empty())
    return fail(ErrorCode::corrupt, fmt::format("{} lacks batches from {} on; fill its holes first",
                                                recovered.directory, recovered.holes.front().before.index + 1));
  std::unique_ptr<JournalWriter> writer(new JournalWriter(disk, std::move(recovered), options, schema));
  if (auto checked = writer->check_options(); !checked) return std::unexpected(checked.error());
  writer->slots_.resize(options.max_inflight);
  const std::size_t header_bytes = block_header_bytes(std::max<std::size_t>(options.max_batch_bytes, schema.size()));
  for (Slot& slot : writer->slots_) slot.block = AlignedBuffer(header_bytes);
  writer->spares_.reserve(options.spare_segments + 1);
  return writer;
}

JournalWriter::~JournalWriter() {
  // What is in flight still uses this object's memory.
  while (outstanding_ > 0)
    if (reap(idle_since_ns_) == 0) std::this_thread::yield();
  if (segment_.file != FileId::none) disk_->close(segment_.file);
  for (const Segment& spare : spares_) disk_->close(spare.file);
}

Result<void> JournalWriter::check_options() const {
  const JournalOptions& o = options_;
  if (o.segment_bytes < min_segment_bytes || o.segment_bytes > max_segment_bytes ||
      o.segment_bytes % disk_block_bytes != 0)
    return fail(ErrorCode::usage, fmt::format("segment_bytes = {} is not a multiple of {} within [{}, {}]",
                                              o.segment_bytes, disk_block_bytes, min_segment_bytes, max_segment_bytes));
  if (o.max_inflight == 0 || o.max_inflight > max_inflight_limit)
    return fail(ErrorCode::usage,
                fmt::format("max_inflight = {} is not within [1, {}]", o.max_inflight, max_inflight_limit));
  if (o.max_batch_bytes > batch_bytes_limit || o.spare_segments == 0)
    return fail(ErrorCode::usage, fmt::format("max_batch_bytes = {} exceeds {}, or there are no spare segments",
                                              o.max_batch_bytes, batch_bytes_limit));
  if (schema_bytes_ > o.max_batch_bytes)
    return fail(ErrorCode::usage,
                fmt::format("the schema's {} bytes exceed max_batch_bytes = {}", schema_bytes_, o.max_batch_bytes));
  const std::uint64_t least =
      sizeof(SegmentHeader) + schema_block_bytes() + block_total_bytes(o.max_batch_bytes) + seal_block_bytes;
  if (o.segment_bytes < least)
    return fail(ErrorCode::usage,
                fmt::format("segment_bytes = {} cannot hold a batch of max_batch_bytes = {}; {} would", o.segment_bytes,
                            o.max_batch_bytes, least));
  return {};
}

SegmentHeader JournalWriter::next_segment_header() const {
  SegmentHeader header;
  header.cluster_id = hard_state().cluster_id;
  header.replica_id = hard_state().replica_id;
  header.segment_id = last_made_.segment_id + 1;
  header.prev_nonce = last_made_.nonce;
  const std::uint64_t drawn_from[2] = {header.segment_id, hard_state().incarnation};
  header.nonce = xxh3_64(std::as_bytes(std::span(drawn_from)), seed_);
  header.segment_bytes = options_.segment_bytes;
  header.max_inflight = options_.max_inflight;
  header.max_batch_bytes = options_.max_batch_bytes;
  header.max_record_bytes = options_.max_record_bytes;
  header.incarnation = hard_state().incarnation;
  header.created_ns = position_.time_ns;
  std::ranges::copy(options_.build_id, header.build_id);
  return header;
}

HardState JournalWriter::next_hard_state(std::uint64_t newest_segment_id) const {
  return upkeep_.next_state(newest_segment_id, durable_index_, durable_chain_);
}

void JournalWriter::begin_segment(const Segment& segment) {
  segment_ = segment;
  stage_ = Stage::open;
  seal_.start(segment.header, position_);
  offset_ = sizeof(SegmentHeader);
  segment_base_ = submitted_;
  last_checksum_ = segment.header.checksum;
  schema_written_ = schema_bytes_ == 0;
  upkeep_.add_segment({segment.header.segment_id, position_.index + 1});
  ++counters_.segments;
}

bool JournalWriter::fits(std::uint32_t total_bytes) const {
  const std::uint64_t schema_bytes = schema_written_ ? 0 : schema_block_bytes();
  return offset_ + schema_bytes + total_bytes + seal_block_bytes <= segment_.header.segment_bytes;
}

bool JournalWriter::can_append() const {
  return !failure_ && !closing_ && !held_ && !truncate_target_ && stage_ == Stage::open && slot_free() &&
         (fits(block_total_bytes(options_.max_batch_bytes)) || !spares_.empty());
}

void JournalWriter::append(const BatchView& batch) {
  LOCKSTEP_ASSERT(can_append(), "append() was called although can_append() is false");
  LOCKSTEP_ASSERT(batch.header->index == position_.index + 1, "batches are appended in order, without gaps");
  LOCKSTEP_ASSERT(batch.header->schema_id == schema_id_, "a batch carries the schema its journal was opened with");
  LOCKSTEP_ASSERT(batch.payload.size() <= options_.max_batch_bytes, "a batch is no larger than max_batch_bytes");
  held_ = batch;
  submit_held();
}

void JournalWriter::submit_held() {
  if (!held_ || stage_ != Stage::open || failure_) return;
  if (!fits(block_total_bytes(held_->payload.size()))) {
    stage_ = Stage::seal_wanted;
    return;
  }
  if (!schema_written_ && slot_free()) submit_schema();
  if (!schema_written_ || !slot_free()) return;
  const BatchView batch = *held_;
  held_.reset();
  submit_batch(batch);
}

void JournalWriter::submit_schema() {
  BlockHeader header = control_header(BlockType::schema, segment_.header, position_);
  header.schema_id = schema_id_;
  const std::span<const std::byte> payload = schema_.span().first(schema_bytes_);
  header.payload_digest = xxh3_128(payload);
  schema_written_ = true;
  submit(header, payload);
}

void JournalWriter::submit_control(BlockType type, std::span<const std::byte> payload) {
  BlockHeader header = control_header(type, segment_.header, position_);
  header.payload_digest = xxh3_128(payload);
  submit(header, payload);
}

void JournalWriter::submit_batch(const BatchView& batch) {
  const BatchHeader& logical = *batch.header;
  BlockHeader header = batch_block(logical);
  if (const auto defect = continuity_defect(position_, header)) {
    failure_ = Error{ErrorCode::corrupt, fmt::format("batch {} does not follow batch {}: {}; it was changed between "
                                                     "sealing and writing, and is not stored",
                                                     logical.index, position_.index, *defect)};
    return;
  }
  if (logical.payload_bytes != batch.payload.size() || xxh3_128(batch.payload) != logical.payload_digest) {
    failure_ = Error{ErrorCode::corrupt, fmt::format("batch {} was changed between sealing and writing (its payload's "
                                                     "digest differs); it is not stored; check this host's memory",
                                                     logical.index)};
    return;
  }
  seal_.add_batch(logical, offset_);
  position_ = position_after(logical);
  submit(header, batch.payload);
}

void JournalWriter::submit(BlockHeader& header, std::span<const std::byte> payload) {
  LOCKSTEP_ASSERT(slot_free(), "no more than max_inflight blocks are in flight");
  ++submitted_;
  Slot& slot = slot_of(submitted_);
  header.cluster_id = segment_.header.cluster_id;
  header.segment_id = segment_.header.segment_id;
  header.nonce = segment_.header.nonce;
  header.file_offset = offset_;
  header.block_no = static_cast<std::uint32_t>(submitted_ - segment_base_);
  header.commit_index = std::min(commit_index_, position_.index);
  header.durable_block = durable_ > segment_base_ ? durable_ - segment_base_ : 0;
  header.prev_block = last_checksum_;
  build_block(header, payload, slot.block.span());
  std::memcpy(&last_checksum_, slot.block.data(), sizeof last_checksum_);

  slot.offset = offset_;
  slot.block_no = header.block_no;
  slot.total_bytes = block_total_bytes(payload.size());
  slot.index = position_.index;
  slot.chain = position_.chain;
  slot.written = false;
  slot.pieces[0] = {slot.block.data(), block_header_bytes(payload.size())};
  std::size_t pieces = 1;
  if (payload.size() > inline_payload_bytes) {
    LOCKSTEP_ASSERT(is_padded_for_journal(payload), "a batch's buffer is padded by pad_for_journal()");
    slot.pieces[pieces++] = {const_cast<std::byte*>(payload.data()), round_up_to_block(payload.size())};
  }
  offset_ += slot.total_bytes;
  vouched_ = header.type == BlockType::mark || header.type == BlockType::seal;
  ++counters_.blocks;
  counters_.bytes += slot.total_bytes;
  ++outstanding_;
  disk_->submit_write(segment_.file, slot.offset, std::span(slot.pieces).first(pieces),
                      (submitted_ - 1) % slots_.size());
}

int JournalWriter::poll(std::int64_t now_ns) {
  int done = reap(now_ns);
  if (failure_) return done;
  done += truncate();
  done += roll();
  submit_held();
  done += sync_written();
  done += mark_when_idle(now_ns);
  done += make_spare(now_ns);
  done += keep_up();
  return done;
}

int JournalWriter::reap(std::int64_t now_ns) {
  int done = 0;
  for (const DiskCompletion& completion : disk_->poll()) {
    ++done;
    --outstanding_;
    if (completion.token < slots_.size()) {
      finish_write(slots_[completion.token], completion.result);
    } else if (completion.token == sync_token) {
      finish_sync(completion.result, now_ns);
    } else if (completion.token == spare_token) {
      finish_spare(now_ns);
    } else {
      finish_upkeep();
    }
  }
  return done;
}

void JournalWriter::finish_write(Slot& slot, std::int64_t result) {
  if (failure_) return;
  if (result != static_cast<std::int64_t>(slot.total_bytes))
    return fail_with(fmt::format("write block {} at offset {} of {}/{}: {}", slot.block_no, slot.offset, directory_,
                                 segment_name(segment_.header.segment_id), reason_of(result, slot.total_bytes)));
  slot.written = true;
  while (written_ < submitted_ && slot_of(written_ + 1).written) ++written_;
  if (written_ > 0) written_index_ = std::max(written_index_, slot_of(written_).index);
}

void JournalWriter::finish_sync(std::int64_t result, std::int64_t now_ns) {
  sync_running_ = false;
  if (failure_) return;
  if (result != 0)
    return fail_with(
        fmt::format("sync {}/{}: {}", directory_, segment_name(segment_.header.segment_id), reason_of(result, 0)));
  durable_ = sync_covers_;
  durable_index_ = slot_of(durable_).index;
  durable_chain_ = slot_of(durable_).chain;
  idle_since_ns_ = now_ns;
}

int JournalWriter::sync_written() {
  if (failure_ || sync_running_ || written_ == durable_) return 0;
  sync_running_ = true;
  sync_covers_ = written_;
  ++counters_.syncs;
  ++outstanding_;
  disk_->submit_sync(segment_.file, sync_token);
  return 1;
}

int JournalWriter::roll() {
  if (stage_ == Stage::seal_wanted && slot_free()) {
    submit_control(BlockType::seal, seal_.payload());
    stage_ = Stage::between;
    return 1;
  }
  const bool next_wanted = held_ || truncate_target_ || !closing_;
  if (stage_ != Stage::between || !all_durable() || !next_wanted || spares_.empty()) return 0;
  if (segment_.file != FileId::none) disk_->close(segment_.file);
  const Segment next = spares_.front();
  spares_.erase(spares_.begin());
  begin_segment(next);
  return 1;
}

bool JournalWriter::mark_wanted() const {
  return !failure_ && !vouched_ && !held_ && stage_ == Stage::open && all_durable();
}

int JournalWriter::mark_when_idle(std::int64_t now_ns) {
  if (!mark_wanted() || (!closing_ && now_ns - idle_since_ns_ < options_.mark_after_ns)) return 0;
  if (fits(block_total_bytes(0))) {
    submit_control(BlockType::mark, {});
    ++counters_.marks;
  } else {
    stage_ = Stage::seal_wanted;
  }
  return 1;
}

int JournalWriter::make_spare(std::int64_t now_ns) {
  const std::size_t wanted = closing_ ? (held_ || truncate_target_ ? 1 : 0) : options_.spare_segments;
  if (failure_ || background_running_ || spares_.size() >= wanted || now_ns < spare_not_before_ns_) return 0;
  background_running_ = true;
  spare_error_.reset();
  spare_made_ = {FileId::none, next_segment_header()};
  spare_state_ = next_hard_state(spare_made_.header.segment_id);
  ++outstanding_;
  disk_->submit_background(
      [this](Disk& disk) -> Result<void> {
        // What an attempt that failed or a crash left behind.
        static_cast<void>(disk.remove(directory_ + "/" + segment_name(spare_made_.header.segment_id) + ".tmp"));
        auto file = make_segment(disk, directory_, spare_made_.header);
        if (!file) {
          spare_error_ = file.error();
          return std::unexpected(file.error());
        }
        spare_made_.file = *file;
        auto stored = upkeep_.store(spare_state_);
        // The file has its space: no error of writing it is a matter of space, whatever its number says.
        if (!stored) spare_error_ = Error{ErrorCode::io, stored.error().message};
        return stored;
      },
      spare_token);
  return 1;
}

void JournalWriter::finish_spare(std::int64_t now_ns) {
  background_running_ = false;
  if (!spare_error_) {
    out_of_space_.reset();
    upkeep_.stored(spare_state_);
    last_made_ = spare_made_.header;
    spares_.push_back(spare_made_);
  } else if (spare_error_->code == ErrorCode::full) {
    out_of_space_ = spare_error_;
    spare_not_before_ns_ = now_ns + options_.space_retry_ns;
  } else {
    if (spare_made_.file != FileId::none) disk_->close(spare_made_.file);
    if (!failure_) failure_ = spare_error_;
  }
}

Result<void> JournalWriter::truncate_to(const HistoryPosition& target) {
  if (target.index < commit_index_ || target.index > appended_index() || truncate_target_)
    return fail(ErrorCode::usage, fmt::format("the journal is not taken back to batch {}: {} is committed, {} the last",
                                              target.index, commit_index_, appended_index()));
  truncate_target_ = target;
  return {};
}

/// One step at a time: what is in flight lands, the hard state no longer counts on what goes, then the block.
int JournalWriter::truncate() {
  if (!truncate_target_ || held_ || !all_durable() || background_running_) return 0;
  const HistoryPosition& target = *truncate_target_;
  if (durable_index_ > target.index) {
    durable_index_ = target.index;
    durable_chain_ = target.chain;
  }
  const HardState& state = hard_state();
  if ((state.flags & hard_state_has_truncates) == 0 || state.durable_index > target.index) {
    upkeep_.want_truncates();
    return 0;
  }
  if (stage_ != Stage::open) return 0;
  const TruncateTarget payload = truncate_target(target);
  if (!fits(block_total_bytes(sizeof payload))) {
    stage_ = Stage::seal_wanted;
    return 1;
  }
  BlockHeader header = control_header(BlockType::truncate, segment_.header, position_);
  header.payload_digest = xxh3_128(object_bytes(payload));
  position_ = target;
  seal_.go_back(target);
  written_index_ = durable_index_ = target.index;
  submit(header, object_bytes(payload));
  truncate_block_ = submitted_;
  truncate_target_.reset();
  return 1;
}

int JournalWriter::keep_up() {
  if (failure_ || background_running_ || (closing_ && !truncate_target_) || !upkeep_.due(durable_index_)) return 0;
  background_running_ = true;
  upkeep_.begin(next_hard_state(last_made_.segment_id));
  ++outstanding_;
  disk_->submit_background([this](Disk& disk) { return upkeep_.run(disk); }, upkeep_token);
  return 1;
}

void JournalWriter::finish_upkeep() {
  background_running_ = false;
  auto fatal = upkeep_.finish();
  if (fatal && !failure_) failure_ = std::move(fatal);
  spare_not_before_ns_ = INT64_MIN;  // it may have freed space
}

std::int64_t JournalWriter::deadline_ns() const {
  std::int64_t deadline = mark_wanted() ? idle_since_ns_ + options_.mark_after_ns : INT64_MAX;
  if (!failure_ && !background_running_ && spares_.size() < options_.spare_segments)
    deadline = std::min(deadline, spare_not_before_ns_);
  return deadline;
}

Result<void> JournalWriter::close(const std::function<void()>& turn_disk) {
  closing_ = true;
  const auto settled = [this] { return all_durable() && vouched_ && !held_ && !truncate_target_; };
  const auto stuck = [this] { return failure_ || ((held_ || truncate_target_) && out_of_space_); };
  // Even when stuck, what is in flight must come back: it uses this object's memory and its batches'.
  while (outstanding_ > 0 || (!stuck() && !settled())) {
    if (turn_disk) turn_disk();
    if (poll(idle_since_ns_) == 0) std::this_thread::yield();
  }
  if (failure_) return std::unexpected(*failure_);
  if (held_ || truncate_target_) return std::unexpected(*out_of_space_);
  return upkeep_.store(next_hard_state(last_made_.segment_id));
}

void JournalWriter::fail_with(const std::string& what) {
  failure_ = Error{ErrorCode::io, fmt::format("cannot {}; batches after {} are not durable and none will be "
                                              "acknowledged: the node stops; check the disk before starting it again",
                                              what, durable_index_)};
}

}  // namespace lockstep
