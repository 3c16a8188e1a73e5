// SPDX-License-Identifier: Apache-2.0
#pragma once

/// SessionDesk: what an executor does for durable sessions: it takes their records, decides which requests run, and who
/// hears which answer. The tables are the shards'; this is the one place that reads and writes them.
///
///     record ──▶ admit ─┬─ run ──▶ handler ──▶ settle ──▶ effects ──▶ recipient
///                       └─ told(): a kept answer, or a refusal
///     a reply in another shard ──▶ mail ──▶ take_mail (in the origin shard) ──▶ effect ──▶ recipient
///     end of a batch that carries no mail ──▶ next_unanswered ──▶ effect ──▶ recipient
///
/// What it returns are effects like a handler's, hashed, from its host's stage: valid until the host's next. One
/// executor, one thread.

#include <cstdint>
#include <optional>
#include <span>

#include "journal/batch.hpp"
#include "runtime/agents/actor_host.hpp"
#include "runtime/agents/frames.hpp"
#include "runtime/agents/session_table.hpp"

namespace lockstep {

class SessionDesk {
 public:
  using Recipient = SessionTable::Recipient;

  SessionDesk(ActorHost& host, const Genesis& genesis) : host_(host), genesis_(genesis) {}

  /// The shard that speaks for a session about its beginning and end.
  [[nodiscard]] std::uint32_t home_of(std::uint64_t session) const;

  /// A record of kind session_open or session_close, in all shards of this executor. What the session's connections are
  /// told, if its home is here.
  [[nodiscard]] std::span<const std::byte> take_record(const RecordView& record);

  /// Whether a durable request is to run in `shard`; else told() is what its client hears.
  [[nodiscard]] bool admit(const RecordHeader& record, std::uint32_t shard);
  [[nodiscard]] std::span<const std::byte> told() const { return told_; }

  /// The effects of the handler of a request that was admitted; or in their place, when they are none, that it has no
  /// answer.
  [[nodiscard]] std::span<const std::byte> settle(const Delivery& delivery, std::span<const std::byte> effects);

  /// A reply or trap that reached its origin shard by mail: the effect that answers the client; nothing when it has
  /// been answered.
  [[nodiscard]] std::span<const std::byte> take_mail(const EffectHeader& effect);

  /// At the end of a batch that carries no mail: the next request that nobody is going to answer any more, as the
  /// effect that says so. Nothing when there is none left.
  [[nodiscard]] std::span<const std::byte> next_unanswered();
  /// The tables were restored.
  void resume();
  /// Whether a request may be waiting for mail that was carried.
  [[nodiscard]] bool has_waiting() const { return has_waiting_; }

  /// Who hears this answer, in its origin shard; the first time it is asked, the answer is kept. Null when nobody does.
  /// The same until delivered().
  [[nodiscard]] const Recipient* recipient(const EffectHeader& effect);
  void delivered() { recipient_.reset(); }

 private:
  [[nodiscard]] SessionTable& table(std::uint32_t shard) { return host_.shard(shard).sessions(); }
  [[nodiscard]] std::span<const std::byte> open(const RecordView& record);
  [[nodiscard]] std::span<const std::byte> close(const RecordView& record);
  [[nodiscard]] std::span<const std::byte> tell(std::uint64_t session, std::uint64_t route, SessionEvent event,
                                                std::uint64_t moved_from = 0);
  void tell(const RecordHeader& record, std::uint32_t shard, const SessionTable::Admission& admission);

  ActorHost& host_;
  Genesis genesis_;
  std::span<const std::byte> told_;
  std::optional<Recipient> recipient_;  ///< of the answer that is being delivered
  bool has_waiting_ = false;
};

}  // namespace lockstep
