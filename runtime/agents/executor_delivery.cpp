// SPDX-License-Identifier: Apache-2.0
// How effects leave an executor: to perimeters, to other executors, to its own mailbox; and what comes in from others.
#include <cstring>
#include <new>

#include "runtime/agents/executor.hpp"
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
  switch (kind) {
    case EffectKind::reply:
      return Outcome::reply;
    case EffectKind::trap:
      return Outcome::trapped;
    case EffectKind::refusal:
      return Outcome::refused;
    case EffectKind::session:
      return Outcome::session;
    case EffectKind::nothing:
    case EffectKind::send:
      break;
  }
  return Outcome::no_reply;
}

/// What is told of a session that answers a frame of the connection; other events come unasked.
bool answers_a_frame(SessionEvent event) {
  return event != SessionEvent::moved && event != SessionEvent::expired;
}

}  // namespace

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
  if (effect.kind == EffectKind::send) return put_mail(effect);
  if (effect.kind == EffectKind::session) {
    const bool answers = answers_a_frame(static_cast<SessionEvent>(effect.detail));
    return put_frame({.route = effect.request, .answers = answers ? 1U : 0U}, effect);
  }
  if (is_durable(effect.session)) return put_session_answer(effect);
  return put_frame({.route = effect.session, .answers = 1}, effect);
}

/// Only the shard that a request came to answers its client.
bool Executor::put_session_answer(const EffectHeader& effect) {
  if (effect.origin != outbox_shard_) {
    // What was dropped after the last round travels no more; its client is answered when no mail is carried.
    return phase_ == Phase::carry || put_mail(effect);
  }
  const SessionDesk::Recipient* const to = desk_.recipient(effect);
  if (to == nullptr) return true;
  if (!put_frame(*to, effect)) return false;
  desk_.delivered();
  return true;
}

bool Executor::put_frame(const SessionDesk::Recipient& to, const EffectHeader& effect) {
  if (to.route == 0 || options_.replies.empty()) return true;
  std::size_t perimeter = perimeter_of(to.route);
  if (perimeter >= options_.replies.size()) perimeter %= options_.replies.size();  // of a node that had more
  ByteRing& ring = *options_.replies[perimeter];
  const std::span<std::byte> room = ring.claim(sizeof(ReplyFrame) + effect.length);
  if (room.empty()) return false;
  const bool is_event = effect.kind == EffectKind::session;
  // Made where it goes: to copy it right after it was written would wait for the writes.
  ::new (static_cast<void*>(room.data()))
      ReplyFrame{.route = to.route,
                 .request = is_event ? effect.session : effect.request,
                 .message_type = effect.message_type,
                 .length = effect.length,
                 .outcome = outcome_of(effect.kind),
                 .answers = static_cast<std::uint16_t>(to.answers),
                 .detail = effect.kind == EffectKind::trap ? static_cast<std::uint32_t>(effect.trap)
                                                           : std::uint32_t{effect.detail}};
  std::memcpy(room.data() + sizeof(ReplyFrame), &effect + 1, effect.length);
  return true;
}

bool Executor::put_mail(const EffectHeader& effect) {
  const std::span frame(reinterpret_cast<const std::byte*>(&effect), effect_bytes(effect.length));
  const std::uint32_t shard = receiving_shard(effect, options_.genesis.shards);
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
        const std::uint32_t shard = receiving_shard(frame_at<EffectHeader>(frame), options_.genesis.shards);
        mail_[peer.rounds_closed % 2].add(shard, frame);
      }
      peer.inbound->release();
      ++progress_;
    }
    peer.inbound->flush();
  }
}

}  // namespace lockstep
