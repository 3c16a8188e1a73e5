// SPDX-License-Identifier: Apache-2.0
#include "runtime/agents/executor.hpp"

#include <algorithm>
#include <cstring>

#include "base/assert.hpp"
#include "runtime/agents/frames.hpp"

namespace lockstep {
namespace {

template <class Frame>
const Frame& frame_at(std::span<const std::byte> bytes) {
  return *reinterpret_cast<const Frame*>(bytes.data());
}

}  // namespace

Executor::Executor(const Options& options)
    : options_(options),
      host_(*options.application, options.genesis, options.index, options.executors),
      desk_(host_, options.genesis),
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
    for (const ByteRing* ring : options_.replies) ring->prefetch_next();
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
    case Phase::settle:
      settle();
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
  deliver(*timer, home_of(timer->target, options_.genesis.shards));
}

bool Executor::run_records() {
  while (const std::optional<RecordView> record = records_.next()) {
    switch (record->header->kind) {
      case RecordKind::message:
        run_request(*record->header, record->payload);
        break;
      case RecordKind::session_open:
      case RecordKind::session_close:
        outbox_ = desk_.take_record(*record);
        break;
      case RecordKind::skip:
        LOCKSTEP_ASSERT(is_skipped(record->header->key), "an order to skip was met that nobody had looked ahead for");
        break;
      case RecordKind::genesis:
        break;
    }
    if (!flush()) return false;
  }
  phase_ = Phase::close_round;
  return true;
}

void Executor::run_request(const RecordHeader& header, std::span<const std::byte> payload) {
  const Address target{header.actor_type, 0, header.key};
  const Home home = home_of(target, options_.genesis.shards);
  if (!host_.owns(home.shard)) return;
  const bool durable = is_durable(header.session);
  if (durable && !desk_.admit(header, home.shard)) {
    outbox_ = desk_.told();
    outbox_shard_ = home.shard;
    return;
  }
  const Delivery delivery{.target = target,
                          .message_type = header.message_type,
                          .payload = payload,
                          .cause_seq = header.seq,
                          .stamp_ns = header.timestamp_ns,
                          .session = header.session,
                          .request = header.request,
                          .origin = home.shard};
  deliver(delivery, home);
  if (durable) {
    outbox_ = desk_.settle(delivery, outbox_);
  } else if (outbox_.empty()) {
    report_nothing(header.session, header.request);
  }
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
    phase_ = Phase::settle;
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
  outbox_shard_ = number;
}

/// No mail is left anywhere, so what has not been answered never will be.
void Executor::settle() {
  outbox_ = desk_.next_unanswered();
  if (outbox_.empty()) {
    phase_ = Phase::checkpoint;
  } else {
    outbox_shard_ = frame_at<EffectHeader>(outbox_).origin;
  }
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
  desk_.resume();
  publish_due();
}

void Executor::publish_due() {
  if (options_.due == nullptr) return;
  // Who waits for an answer that never comes is told so in a batch that carries no mail.
  const bool at_once = !carried_.empty() || desk_.has_waiting();
  const std::int64_t due_ns = at_once ? NextDue::mail_carried : host_.earliest_deadline_ns();
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
                              .session = query.route,
                              .request = query.request},
                             home_of(target, options_.genesis.shards));
      if (outbox_.empty()) {
        report_nothing(query.route, query.request);
      } else {  // a query has one answer
        outbox_ = outbox_.first(effect_bytes(frame_at<EffectHeader>(outbox_).length));
      }
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
  if (effect.kind != EffectKind::send) {
    outbox_ = desk_.take_mail(effect);
    outbox_shard_ = effect.origin;
    ++progress_;
    return;
  }
  deliver({.target = effect.target(),
           .message_type = effect.message_type,
           .payload = effect_payload(effect),
           .cause_seq = effect.cause_seq,
           .stamp_ns = stamp_ns,
           .sender = effect.sender(),
           .session = effect.session,
           .request = effect.request,
           .origin = effect.origin},
          home_of(effect.target(), options_.genesis.shards));
}

void Executor::deliver(const Delivery& delivery, const Home& home) {
  outbox_shard_ = home.shard;
  if (is_skipped(delivery.cause_seq)) {
    outbox_ = host_.refuse(delivery, home, TrapKind::skipped);
    ++progress_;
    return;
  }
  if (options_.breadcrumb != nullptr) options_.breadcrumb->enter(delivery.cause_seq);
  outbox_ = host_.deliver(delivery, home, batch_.index);
  if (options_.breadcrumb != nullptr) options_.breadcrumb->leave();
  ++handlers_run_;
  ++progress_;
}

bool Executor::is_skipped(std::uint64_t seq) const {
  return !options_.skips.empty() && std::ranges::binary_search(options_.skips, seq);
}

/// A client waits for every request, so one that came to nothing says so.
void Executor::report_nothing(std::uint64_t route, std::uint64_t request) {
  nothing_ = {.kind = EffectKind::nothing, .session = route, .request = request};
  outbox_ = object_bytes(nothing_);
}

}  // namespace lockstep
