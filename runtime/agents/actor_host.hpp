// SPDX-License-Identifier: Apache-2.0
#pragma once

/// ActorHost: runs one handler as one atomic step. It owns an executor's shards, the write barrier and the effect
/// stage, and knows nothing of batches, rounds or rings.
///
/// A handler that throws, exhausts its arena or breaks a limit is wholly undone: its writes, allocations, timers and
/// counters, the creation of the actor itself, its effects. What remains is one effect of kind `trap`. Every
/// effect is chained into its shard's effects hash here, so what is not hashed does not leave.
///
/// One thread, the executor's.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "lockstep/application.hpp"
#include "lockstep/effects.hpp"
#include "lockstep/log_sink.hpp"
#include "lockstep/write_barrier.hpp"
#include "runtime/agents/genesis.hpp"
#include "runtime/agents/shard.hpp"
#include "runtime/agents/timer_index.hpp"

namespace lockstep {

/// A message on its way into a handler.
struct Delivery {
  Address target = {};
  std::uint32_t message_type = 0;
  std::span<const std::byte> payload = {};  ///< 16-aligned
  std::uint64_t cause_seq = 0;
  std::int64_t stamp_ns = 0;  ///< now(), unless the actor has seen a later one
  Address sender = {};
  std::uint64_t session = 0;
  std::uint64_t request = 0;
  std::uint32_t origin = 0;  ///< as in EffectHeader
};

class ActorHost {
 public:
  /// Hosts the shards s for which executor_of(s, executors) == index. `application` must outlive it.
  ActorHost(const Application& application, const Genesis& genesis, std::uint32_t index, std::uint32_t executors);

  /// Runs the handler that `delivery` asks for, in batch `batch`. Returns its effects in the order it made them,
  /// hashed; or one trap. Valid until the next call. `home` is that of delivery.target.
  [[nodiscard]] std::span<const std::byte> deliver(const Delivery& delivery, const Home& home, std::uint64_t batch);

  /// A delivery that must not run, as an effect: the trap it comes to instead.
  [[nodiscard]] std::span<const std::byte> refuse(const Delivery& delivery, const Home& home, TrapKind kind);

  /// Runs a query on the state as it is, changing nothing. Returns its replies, or one trap.
  [[nodiscard]] std::span<const std::byte> answer(const Delivery& query, const Home& home);

  /// A message that comes to nothing, as an effect: mail beyond what a shard may carry.
  [[nodiscard]] std::span<const std::byte> drop(const EffectHeader& mail, std::uint32_t shard, TrapKind kind);

  /// Effects that are the executor's own: adds to the stage between these two, then hashes them into `shard`'s.
  [[nodiscard]] EffectStage& begin_own_effects();
  [[nodiscard]] std::span<const std::byte> end_own_effects(std::uint32_t shard);

  /// What a timer of the index delivers: moves its message into `timer_payload`, and the timer is no more. Nothing when
  /// it was cancelled.
  [[nodiscard]] std::optional<Delivery> take_timer(const TimerIndex::Entry& entry);
  /// The earliest deadline of a timer that exists; INT64_MAX when there is none.
  [[nodiscard]] std::int64_t earliest_deadline_ns();
  [[nodiscard]] TimerIndex& timers() { return timers_; }

  /// Tells `observer` of each page before it changes, from here on; null: nobody.
  void observe(PageObserver* observer) { barrier_.set_observer(observer); }

  /// Where Context::log() goes from here on; null: nowhere.
  void log_to(LogSink* sink) { log_sink_ = sink; }

  /// Of a new host: takes an arena of a snapshot over, `key` being the actor's, or which of shard `number`'s own arenas
  /// it is when `actor_type` is 0. In the order in which the snapshot has them. After an Error the host is of no use.
  [[nodiscard]] Result<void> restore_arena(std::uint32_t number, std::uint32_t actor_type, std::uint64_t key,
                                           std::uint64_t image_bytes, const ShardMemory::Fill& fill);

  /// One of this host's shards.
  [[nodiscard]] Shard& shard(std::uint32_t number) { return *shards_[number]; }
  [[nodiscard]] bool owns(std::uint32_t number) const { return shards_[number] != nullptr; }
  /// Numbers of this host's shards, ascending.
  [[nodiscard]] std::span<const std::uint32_t> owned() const { return owned_; }
  [[nodiscard]] std::uint64_t traps() const { return traps_; }

 private:
  [[nodiscard]] TrapKind run(Shard& shard, const Delivery& delivery, std::uint64_t hash, const Handler& handler);
  [[nodiscard]] TrapKind call(Actor& actor, bool fresh, const Handler& handler, const Delivery& delivery);
  void log_undone(const Delivery& delivery, TrapKind trap);
  [[nodiscard]] EffectHeader header_of(const Delivery& delivery) const;
  void index_timers(const Actor& actor);
  [[nodiscard]] bool has_timer(const TimerIndex::Entry& entry);
  static void hash_effects(Shard& shard, std::span<const std::byte> effects);

  const Application& application_;
  Genesis genesis_;
  LogSink* log_sink_ = nullptr;
  std::vector<std::byte> log_;
  WriteBarrier barrier_;
  EffectStage stage_;
  TimerIndex timers_;
  std::vector<std::unique_ptr<Shard>> shards_;  // by number; null where another host owns it
  std::vector<std::uint32_t> owned_;
  std::vector<std::byte> timer_payload_;
  std::uint64_t traps_ = 0;
};

}  // namespace lockstep
