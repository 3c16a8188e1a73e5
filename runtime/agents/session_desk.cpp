// SPDX-License-Identifier: Apache-2.0
#include "runtime/agents/session_desk.hpp"

#include <algorithm>

#include "base/assert.hpp"
#include "control_generated.h"
#include "lockstep/message.hpp"
#include "lockstep/wire.hpp"
#include "runtime/agents/mail.hpp"

namespace lockstep {
namespace {

SessionTable::Answer answer_of(const EffectHeader& effect) {
  return {effect.kind, effect.trap, effect.message_type, effect_payload(effect)};
}

wire::WireError refusal_of(Verdict verdict) {
  switch (verdict) {
    case Verdict::lost:
      return wire::WireError::answer_lost;
    case Verdict::stale:
      return wire::WireError::stale;
    case Verdict::no_session:
      return wire::WireError::no_session;
    default:
      return wire::WireError::overload;
  }
}

/// Whether one of a handler's effects ends its request.
bool has_answer(std::span<const std::byte> effects) {
  while (!effects.empty()) {
    const auto& effect = *reinterpret_cast<const EffectHeader*>(effects.data());
    if (effect.kind != EffectKind::send) return true;
    effects = effects.subspan(effect_bytes(effect.length));
  }
  return false;
}

}  // namespace

std::uint32_t SessionDesk::home_of(std::uint64_t session) const {
  return shard_of(xxh3_64(object_bytes(session)), genesis_.shards);
}

std::span<const std::byte> SessionDesk::take_record(const RecordView& record) {
  return record.header->kind == RecordKind::session_open ? open(record) : close(record);
}

std::span<const std::byte> SessionDesk::open(const RecordView& record) {
  const RecordHeader& header = *record.header;
  const std::uint64_t secret = decode<control::SessionOpen>(record.payload.data()).secret();
  const std::uint64_t route = header.request;
  const bool is_new = header.session == 0;
  const std::uint64_t session = is_new ? header.seq : header.session;
  std::uint64_t moved_from = 0;
  bool done = false;
  for (const std::uint32_t shard : host_.owned()) {
    if (is_new) {
      done = table(shard).open(session, secret, route, header.timestamp_ns);
    } else {
      const auto before = table(shard).resume(session, secret, route, header.timestamp_ns);
      done = before.has_value();
      if (done && *before != route) moved_from = *before;
    }
  }
  if (is_new) return tell(session, route, done ? SessionEvent::opened : SessionEvent::refused);
  return tell(session, route, done ? SessionEvent::resumed : SessionEvent::unknown, moved_from);
}

std::span<const std::byte> SessionDesk::close(const RecordView& record) {
  const RecordHeader& header = *record.header;
  const auto reason = decode<control::SessionClose>(record.payload.data()).reason();
  std::optional<std::uint64_t> route;
  for (const std::uint32_t shard : host_.owned()) {
    // A goodbye over a connection that the session has left is none.
    if (reason == control::CloseReason::goodbye && table(shard).route_of(header.session) != header.request) continue;
    route = table(shard).close(header.session);
  }
  if (!route) return {};
  return tell(header.session, *route,
              reason == control::CloseReason::goodbye ? SessionEvent::closed : SessionEvent::expired);
}

std::span<const std::byte> SessionDesk::tell(std::uint64_t session, std::uint64_t route, SessionEvent event,
                                             std::uint64_t moved_from) {
  const std::uint32_t home = home_of(session);
  if (!host_.owns(home)) return {};
  EffectHeader effect;
  effect.kind = EffectKind::session;
  effect.origin = home;
  effect.session = session;
  effect.request = route;
  effect.detail = static_cast<std::uint8_t>(event);
  EffectStage& stage = host_.begin_own_effects();
  stage.add_bytes(effect, {});
  if (moved_from != 0) {
    effect.request = moved_from;
    effect.detail = static_cast<std::uint8_t>(SessionEvent::moved);
    stage.add_bytes(effect, {});
  }
  return host_.end_own_effects(home);
}

bool SessionDesk::admit(const RecordHeader& record, std::uint32_t shard) {
  const SessionTable::Admission admission =
      table(shard).admit(record.session, record.request, record.ack_distance, record.timestamp_ns);
  if (admission.verdict == Verdict::fresh) return true;
  told_ = {};
  if (admission.verdict != Verdict::attached) tell(record, shard, admission);
  return false;
}

void SessionDesk::tell(const RecordHeader& record, std::uint32_t shard, const SessionTable::Admission& admission) {
  EffectHeader effect;
  effect.kind = EffectKind::refusal;
  effect.origin = shard;
  effect.cause_seq = record.seq;
  effect.cause_time_ns = record.timestamp_ns;
  effect.session = record.session;
  effect.request = record.request;
  if (admission.verdict == Verdict::answered) {
    effect.kind = admission.answer.kind;
    effect.trap = admission.answer.trap;
    effect.message_type = admission.answer.message_type;
  } else {
    effect.detail = static_cast<std::uint8_t>(refusal_of(admission.verdict));
  }
  host_.begin_own_effects().add_bytes(effect, admission.answer.payload);
  told_ = host_.end_own_effects(shard);
  recipient_ = Recipient{admission.route, 1};
}

std::span<const std::byte> SessionDesk::settle(const Delivery& delivery, std::span<const std::byte> effects) {
  if (has_answer(effects)) return effects;
  if (!effects.empty()) {
    table(delivery.origin).wait(delivery.session, delivery.request);
    has_waiting_ = true;
    return effects;
  }
  EffectHeader nothing;
  nothing.kind = EffectKind::nothing;
  nothing.origin = delivery.origin;
  nothing.cause_seq = delivery.cause_seq;
  nothing.cause_time_ns = delivery.stamp_ns;
  nothing.session = delivery.session;
  nothing.request = delivery.request;
  host_.begin_own_effects().add_bytes(nothing, {});
  return host_.end_own_effects(delivery.origin);
}

std::span<const std::byte> SessionDesk::take_mail(const EffectHeader& effect) {
  recipient_ = table(effect.origin).answer(effect.session, effect.request, answer_of(effect));
  if (!recipient_) return {};
  host_.begin_own_effects().add_bytes(effect, effect_payload(effect));
  return host_.end_own_effects(effect.origin);
}

void SessionDesk::resume() {
  has_waiting_ = std::ranges::any_of(host_.owned(), [this](std::uint32_t shard) { return table(shard).has_waiting(); });
}

std::span<const std::byte> SessionDesk::next_unanswered() {
  if (!has_waiting_) return {};
  for (const std::uint32_t shard : host_.owned()) {
    const auto waiting = table(shard).take_waiting();
    if (!waiting) continue;
    Delivery delivery;
    delivery.origin = shard;
    delivery.session = waiting->session;
    delivery.request = waiting->request;
    return settle(delivery, {});
  }
  has_waiting_ = false;
  return {};
}

const SessionDesk::Recipient* SessionDesk::recipient(const EffectHeader& effect) {
  if (!recipient_) recipient_ = table(effect.origin).answer(effect.session, effect.request, answer_of(effect));
  return recipient_ ? &*recipient_ : nullptr;
}

}  // namespace lockstep
