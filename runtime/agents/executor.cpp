// SPDX-License-Identifier: Apache-2.0
#include "runtime/agents/executor.hpp"

#include <algorithm>
#include <cstring>

#include "base/assert.hpp"
#include "runtime/agents/frames.hpp"

namespace lockstep {
namespace {

/// Effects delivered before the rings' other ends get to see them; all are at the end of a step.
constexpr std::uint32_t publish_interval = 32;

template <class Frame>
const Frame& frame_at(std::span<const std::byte> bytes) {
  return *reinterpret_cast<const Frame*>(bytes.data());
}

Outcome outcome_of(EffectKind kind) {
  if (kind == EffectKind::reply) return Outcome::reply;
  return kind == EffectKind::trap ? Outcome::trapped : Outcome::no_reply;
}

}  // namespace

Executor::Executor(const Options& options)
    : options_(options),
      host_(*options.application, options.genesis, options.index, options.executors, options.observed),
      meets_(options.executors > 1 && options.application->has_sends()) {
  const std::size_t longest = effect_bytes(options.genesis.message_bytes);
  for (const ByteRing* ring : options_.replies) {
    LOCKSTEP_ASSERT(ring->max_frame_bytes() >= longest, "a reply ring is too small for the longest message");
  }
  if (!meets_) return;
  LOCKSTEP_ASSERT(options_.mail != nullptr && options_.mail->executors() == options_.executors,
                  "several executors that send need mail rings between them");
  for (std::uint32_t index = 0; index < options_.executors; ++index) {
    if (index == options_.index) continue;
    peers_.push_back({.index = index,
                      .inbound = &options_.mail->ring(index, options_.index),
                      .outbound = &options_.mail->ring(options_.index, index)});
    LOCKSTEP_ASSERT(peers_.back().outbound->max_frame_bytes() >= longest,
                    "a mail ring is too small for the longest message");
  }
}

bool Executor::step(const BatchView& batch, bool take_snapshot) {
  if (phase_ == Phase::idle) {
    if (!flush()) return false;  // the answer to a query
    take_snapshot_ = take_snapshot;
    begin(batch);
  }
  while (flush() && advance()) {
    ++progress_;
    if (phase_ != Phase::idle) continue;
    publish();
    return true;
  }
  publish();
  take_inbound();
  return false;
}

void Executor::begin(const BatchView& batch) {
  batch_ = *batch.header;
  records_ = RecordCursor(batch.payload);
  batch_round_ = 0;
  carrying_.assign(carried_.rbegin(), carried_.rend());
  carried_.clear();
  due_.clear();
  next_due_ = 0;
  while (host_.earliest_deadline_ns() <= batch_.first_time_ns) due_.push_back(host_.timers().pop());
  phase_ = Phase::carried;
}

/// One move of the state machine; false when it has to wait for somebody.
bool Executor::advance() {
  switch (phase_) {
    case Phase::idle:
      return true;
    case Phase::carried:
      run_carried();
      return true;
    case Phase::timers:
      run_timers();
      return true;
    case Phase::records:
      return run_records();
    case Phase::mail:
      return run_mail();
    case Phase::close_round:
      return close_round();
    case Phase::meet:
      return meet();
    case Phase::carry:
      carry();
      return true;
    case Phase::checkpoint:
      return checkpoint();
  }
  return false;
}

void Executor::run_carried() {
  if (!frames_.empty()) {
    const std::span<const std::byte> frame = frames_.first(effect_bytes(frame_at<EffectHeader>(frames_).length));
    frames_ = frames_.subspan(frame.size());
    deliver_frame(frame, batch_.first_time_ns);
    if (!frames_.empty()) return;
    host_.shard(carrying_.back()).drop_carried();
    carrying_.pop_back();
    return;
  }
  if (carrying_.empty()) {
    phase_ = Phase::timers;
    return;
  }
  frames_ = host_.shard(carrying_.back()).carried();
}

void Executor::run_timers() {
  if (next_due_ == due_.size()) {
    phase_ = Phase::records;
    return;
  }
  std::optional<Delivery> timer = host_.take_timer(due_[next_due_++]);
  if (!timer) return;
  timer->cause_seq = batch_.first_seq;
  timer->stamp_ns = batch_.first_time_ns;
  deliver(*timer, address_hash(timer->target));
}

bool Executor::run_records() {
  while (const std::optional<RecordView> record = records_.next()) {
    const RecordHeader& header = *record->header;
    if (header.kind == RecordKind::skip)
      LOCKSTEP_ASSERT(is_skipped(header.key), "an order to skip was met that nobody had looked ahead for");
    if (header.kind != RecordKind::message) continue;
    const Address target{header.actor_type, 0, header.key};
    const std::uint64_t hash = address_hash(target);
    if (executor_of(shard_of(hash, options_.genesis.shards), options_.executors) != options_.index) continue;
    deliver({.target = target,
             .message_type = header.message_type,
             .payload = record->payload,
             .cause_seq = header.seq,
             .stamp_ns = header.timestamp_ns,
             .session = header.session,
             .request = header.request},
            hash);
    if (outbox_.empty()) report_nothing(header.session, header.request);
    if (!flush()) return false;
  }
  phase_ = Phase::close_round;
  return true;
}

bool Executor::run_mail() {
  Mailbox& mail = mail_[(round_ - 1) % 2];
  while (next_mail_ < mail.entries().size()) {
    const EffectHeader& effect = *mail.entries()[next_mail_++].effect;
    deliver_frame({reinterpret_cast<const std::byte*>(&effect), effect_bytes(effect.length)}, effect.cause_time_ns);
    if (!flush()) return false;
  }
  mail.clear();
  phase_ = Phase::close_round;
  return true;
}

bool Executor::close_round() {
  for (; next_marker_ < peers_.size(); ++next_marker_) {
    const std::span<std::byte> room = peers_[next_marker_].outbound->claim(sizeof(RoundMarker));
    if (room.empty()) return false;
    const RoundMarker marker{round_, sent_ ? 1U : 0U};
    std::memcpy(room.data(), &marker, sizeof marker);
    ++progress_;
  }
  publish();
  next_marker_ = 0;
  phase_ = Phase::meet;
  return true;
}

bool Executor::meet() {
  take_inbound();
  bool any_sent = sent_;
  for (const Peer& peer : peers_) {
    if (peer.rounds_closed <= round_) return false;
    any_sent = any_sent || peer.sent[round_ % 2];
  }
  Mailbox& mail = mail_[round_ % 2];
  ++round_;
  ++batch_round_;
  sent_ = false;
  next_mail_ = 0;
  if (!any_sent) {
    phase_ = Phase::checkpoint;
    return true;
  }
  mail.sort();
  phase_ = batch_round_ < options_.genesis.max_rounds ? Phase::mail : Phase::carry;
  return true;
}

/// What is left after the last round becomes part of the shards' state; what a shard may not carry comes to nothing.
void Executor::carry() {
  Mailbox& mail = mail_[(round_ - 1) % 2];
  const std::span<const Mailbox::Entry> entries = mail.entries();
  if (next_carry_ == entries.size()) {
    mail.clear();
    next_carry_ = 0;
    phase_ = Phase::checkpoint;
    return;
  }
  const std::uint32_t number = entries[next_carry_].shard;
  if (carried_.empty() || carried_.back() != number) {
    std::uint64_t bytes = 0;
    std::size_t end = next_carry_;
    while (end < entries.size() && entries[end].shard == number) {
      const std::size_t frame = effect_bytes(entries[end].effect->length);
      if (bytes + frame > options_.genesis.shard_mail_bytes) break;
      bytes += frame;
      ++end;
    }
    host_.shard(number).carry(entries.subspan(next_carry_, end - next_carry_));
    carried_.push_back(number);
    next_carry_ = end;
    return;
  }
  outbox_ = host_.drop(*entries[next_carry_++].effect, number, TrapKind::shard_budget);
}

bool Executor::checkpoint() {
  if (options_.board != nullptr &&
      is_checkpoint(batch_.first_seq, batch_.record_count, options_.genesis.checkpoint_interval)) {
    const std::optional<CheckpointBoard::Slot> slot = options_.board->open(options_.index);
    if (!slot) return false;
    if (options_.index == 0) *slot->batch = batch_;
    digest_shards(slot->shards);
    options_.board->publish(options_.index);
    if (take_snapshot_ && options_.sweep != nullptr) options_.sweep->begin(batch_.index, host_);
  }
  finish();
  return true;
}

void Executor::finish() {
  phase_ = Phase::idle;
  executed_ns_ = batch_.last_time_ns;
  executed_seq_ = batch_.first_seq - 1 + batch_.record_count;
  publish_due();
}

void Executor::resume(const HistoryPosition& position) {
  executed_ns_ = position.time_ns;
  executed_seq_ = position.seq;
  for (const std::uint32_t number : host_.owned())
    if (!host_.shard(number).carried().empty()) carried_.push_back(number);
  publish_due();
}

void Executor::publish_due() {
  if (options_.due == nullptr) return;
  const std::int64_t due_ns = carried_.empty() ? host_.earliest_deadline_ns() : NextDue::mail_carried;
  // Pairs with the sequencer's acquire load, once it has seen this executor's cursor.
  options_.due->time_ns.store(due_ns, std::memory_order_release);
}

int Executor::answer_queries() {
  if (phase_ != Phase::idle) return 0;
  int answered = 0;
  for (ByteRing* ring : options_.queries) {
    while (flush()) {
      const std::span<const std::byte> frame = ring->peek();
      if (frame.empty()) break;
      const auto& query = frame_at<QueryFrame>(frame);
      const Address target{query.actor_type, 0, query.key};
      outbox_ = host_.answer({.target = target,
                              .message_type = query.message_type,
                              .payload = frame.subspan(sizeof(QueryFrame), query.length),
                              .cause_seq = executed_seq_,
                              .stamp_ns = executed_ns_,
                              .session = query.session,
                              .request = query.request},
                             address_hash(target));
      if (outbox_.empty()) report_nothing(query.session, query.request);
      ring->release();
      ++answered;
    }
    ring->flush();
  }
  publish();
  return answered;
}

void Executor::digest_shards(std::span<ShardDigests> shards) {
  for (const std::uint32_t number : host_.owned()) {
    Shard& shard = host_.shard(number);
    shards[number] = {shard.state_digest(), shard.effects};
  }
}

void Executor::deliver_frame(std::span<const std::byte> frame, std::int64_t stamp_ns) {
  const auto& effect = frame_at<EffectHeader>(frame);
  deliver({.target = effect.target,
           .message_type = effect.message_type,
           .payload = effect_payload(effect),
           .cause_seq = effect.cause_seq,
           .stamp_ns = stamp_ns,
           .sender = effect.sender,
           .session = effect.session,
           .request = effect.request},
          address_hash(effect.target));
}

void Executor::deliver(const Delivery& delivery, std::uint64_t hash) {
  if (is_skipped(delivery.cause_seq)) {
    outbox_ = host_.refuse(delivery, hash, TrapKind::skipped);
    ++progress_;
    return;
  }
  if (options_.breadcrumb != nullptr) options_.breadcrumb->enter(delivery.cause_seq);
  outbox_ = host_.deliver(delivery, hash, batch_.index);
  if (options_.breadcrumb != nullptr) options_.breadcrumb->leave();
  ++handlers_run_;
  ++progress_;
}

bool Executor::is_skipped(std::uint64_t seq) const {
  return !options_.skips.empty() && std::ranges::binary_search(options_.skips, seq);
}

/// A client waits for every request, so one that came to nothing says so.
void Executor::report_nothing(std::uint64_t session, std::uint64_t request) {
  nothing_ = {.kind = EffectKind::nothing, .session = session, .request = request};
  outbox_ = object_bytes(nothing_);
}

/// Delivers the last handler's effects; false when a ring is full, and then to be called again.
bool Executor::flush() {
  while (!outbox_.empty()) {
    const auto& effect = frame_at<EffectHeader>(outbox_);
    if (!put(effect)) return false;
    ++progress_;
    outbox_ = outbox_.subspan(effect_bytes(effect.length));
    if (++unpublished_ == publish_interval) publish();
  }
  return true;
}

bool Executor::put(const EffectHeader& effect) {
  return effect.kind == EffectKind::send ? put_mail(effect) : put_reply(effect);
}

bool Executor::put_reply(const EffectHeader& effect) {
  if (effect.session == 0 || options_.replies.empty()) return true;
  ByteRing& ring = *options_.replies[perimeter_of(effect.session) % options_.replies.size()];
  const std::span<std::byte> room = ring.claim(sizeof(ReplyFrame) + effect.length);
  if (room.empty()) return false;
  const ReplyFrame frame{.session = effect.session,
                         .request = effect.request,
                         .message_type = effect.message_type,
                         .length = effect.length,
                         .outcome = outcome_of(effect.kind),
                         .detail = static_cast<std::uint32_t>(effect.trap)};
  std::memcpy(room.data(), &frame, sizeof frame);
  std::memcpy(room.data() + sizeof frame, &effect + 1, effect.length);
  return true;
}

bool Executor::put_mail(const EffectHeader& effect) {
  const std::span frame(reinterpret_cast<const std::byte*>(&effect), effect_bytes(effect.length));
  const std::uint32_t shard = shard_of(address_hash(effect.target), options_.genesis.shards);
  const std::uint32_t owner = executor_of(shard, options_.executors);
  sent_ = true;
  if (owner == options_.index) {
    mail_[round_ % 2].add(shard, frame);
    return true;
  }
  const Peer& peer = peers_[owner < options_.index ? owner : owner - 1];
  const std::span<std::byte> room = peer.outbound->claim(frame.size());
  if (room.empty()) return false;
  std::memcpy(room.data(), frame.data(), frame.size());
  return true;
}

void Executor::publish() {
  for (ByteRing* ring : options_.replies) ring->publish();
  for (const Peer& peer : peers_) peer.outbound->publish();
  unpublished_ = 0;
}

void Executor::take_inbound() {
  for (Peer& peer : peers_) {
    for (auto frame = peer.inbound->peek(); !frame.empty(); frame = peer.inbound->peek()) {
      if (frame.size() == sizeof(RoundMarker)) {
        peer.sent[peer.rounds_closed % 2] = frame_at<RoundMarker>(frame).sent != 0;
        ++peer.rounds_closed;
      } else {
        const Address& target = frame_at<EffectHeader>(frame).target;
        mail_[peer.rounds_closed % 2].add(shard_of(address_hash(target), options_.genesis.shards), frame);
      }
      peer.inbound->release();
      ++progress_;
    }
    peer.inbound->flush();
  }
}

}  // namespace lockstep
