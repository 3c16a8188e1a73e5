// SPDX-License-Identifier: Apache-2.0
#pragma once

/// Context: all that a handler may see and do beside its own state. What it shows is stamped or derived from history,
/// so it is the same on every replica and in every replay; it has no wall clock, no node, no role, no back-pressure.
/// What it does are effects: they cannot fail in the handler, and happen after it, or not at all if it traps.
///
/// Belongs to one handler's run, on its executor's thread; never to be kept.

#include <fmt/format.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <span>
#include <type_traits>
#include <utility>

#include "lockstep/actor_header.hpp"
#include "lockstep/address.hpp"
#include "lockstep/effects.hpp"
#include "lockstep/log_sink.hpp"
#include "lockstep/receives.hpp"
#include "lockstep/timers.hpp"

namespace lockstep {

/// Stamped time: nanoseconds since the Unix epoch.
using Time = std::chrono::sys_time<std::chrono::nanoseconds>;
using Duration = std::chrono::nanoseconds;

/// What the executor sets up for one handler.
struct Invocation {
  EffectHeader effect;                      ///< what every effect of this handler begins with: a reply
  Address sender;                           ///< nobody for a client's message, the actor itself for a timer
  std::uint64_t cluster_seed = 0;           ///< keys random()
  std::span<const std::uint32_t> may_send;  ///< message ids of the actor type's Sends
  const char* actor_name = "";
  LogSink* log = nullptr;  ///< where log() goes; null: nowhere
};

namespace detail {

template <class Actor, class M>
consteval bool check_received() {
  constexpr bool received = Actor::Receives::template contains<M>;
  static_assert(received,
                "lockstep: the target actor does not list this message in Receives; add it there with a handler, or "
                "send a message that it receives");
  return received;
}

}  // namespace detail

class Context {
 public:
  Context(const Invocation& invocation, Arena& arena, ActorHeader& header, EffectStage& stage)
      : invocation_(invocation), arena_(arena), header_(header), stage_(stage) {}
  Context(const Context&) = delete;
  Context& operator=(const Context&) = delete;

  /// The stamp of what caused this handler; never before the actor's last.
  [[nodiscard]] Time now() const { return Time(Duration(header_.last_now_ns)); }
  /// Sequence number of the cause.
  [[nodiscard]] std::uint64_t seq() const { return invocation_.effect.cause_seq; }
  [[nodiscard]] Address self() const { return header_.self; }
  /// The actor that sent the message; nobody (type 0) for a client's, self for a timer's.
  [[nodiscard]] Address sender() const { return invocation_.sender; }

  /// 64 random bits, from the cluster's seed, the actor, its invocation and the draw: other actors' draws, and handlers
  /// added elsewhere, do not shift them.
  [[nodiscard]] std::uint64_t random() {
    struct Key {
      Address actor;
      std::uint64_t invocation;
      std::uint64_t draw;
    };
    return xxh3_64(object_bytes(Key{header_.self, header_.invocations, draws_++}), invocation_.cluster_seed);
  }
  /// Uniform in [0, bound); bound must not be 0.
  [[nodiscard]] std::uint64_t random_below(std::uint64_t bound) {
    LOCKSTEP_ASSERT(bound != 0, "random_below(0) has no value to give");
    const std::uint64_t uneven = (UINT64_MAX % bound + 1) % bound;  // 2^64 mod bound: the values that would favour some
    std::uint64_t value = random();
    while (value < uneven) value = random();
    return value % bound;
  }

  /// Answers the client whose request this handler follows from, directly or through other actors. Goes nowhere when
  /// the cause is a timer. The first reply to a request is its answer, whichever actor it comes from; others go
  /// nowhere.
  template <Message M, class... Args>
  void reply(const Args&... fields) {
    EffectHeader& effect = stage_.add<M>(invocation_.effect, fields...);
    effect.counter = header_.sends;
    header_.sends += 1;  // the executor announced the header's write
  }

  /// Sends to an actor, which handles it in the next round of this batch. The sender's type must list M in its Sends.
  template <Message M, class To, class... Args>
  void send(Ref<To> to, const Args&... fields) {
    if constexpr (detail::check_received<To, M>()) {
      if (!may_send(message_id<M>)) stage_.raise(TrapKind::undeclared_send);
      EffectHeader& effect = stage_.add<M>(invocation_.effect, fields...);
      effect.kind = EffectKind::send;
      effect.set_target(to.address());
      effect.counter = header_.sends;
      header_.sends += 1;  // the executor announced the header's write
    }
  }

  /// Delivers an M to this actor when stamped time reaches `deadline`; at the next batch if it has already. Timers of
  /// one deadline fire in the order (actor, id).
  template <Message M, class... Args>
  TimerId at(Time deadline, const Args&... fields) {
    const std::int64_t deadline_ns = deadline.time_since_epoch().count();
    return set_timer(deadline_ns, message_id<M>, stage_.encode<M>(fields...));
  }
  template <Message M, class... Args>
  TimerId after(Duration delay, const Args&... fields) {
    return at<M>(later(delay), fields...);
  }
  /// Whether there was such a timer of this actor.
  bool cancel(TimerId id) { return ActorTimers(arena_, header_).cancel(id); }

  /// A line in the file that the node's `[log] actor_file` or a replay's --log names, with seq and actor in front; else
  /// nothing is even formatted. It observes, and is no part of history: when the disk is slow lines are left out, when
  /// history is run again at a start there are none, and a handler that traps leaves its lines behind, with one more
  /// that says so. At most max_log_line_bytes, the rest is cut. `args` are evaluated in any case.
  template <class... Args>
  void log(fmt::format_string<Args...> format, Args&&... args) const {
    if (invocation_.log == nullptr) return;
    LogLine line(seq(), invocation_.actor_name, header_.self.key);
    line.add(format, std::forward<Args>(args)...);
    invocation_.log->write(line.text());
  }

 private:
  [[nodiscard]] bool may_send(std::uint32_t id) const {
    for (const std::uint32_t declared : invocation_.may_send) {
      if (declared == id) return true;
    }
    return false;
  }
  /// now() + delay, at most the end of time.
  [[nodiscard]] Time later(Duration delay) const {
    const std::int64_t now_ns = header_.last_now_ns;
    const std::int64_t room_ns = INT64_MAX - now_ns;
    return Time(Duration(delay.count() > room_ns ? INT64_MAX : now_ns + delay.count()));
  }
  TimerId set_timer(std::int64_t deadline_ns, std::uint32_t message_type, std::span<const std::byte> payload);

  const Invocation& invocation_;
  Arena& arena_;
  ActorHeader& header_;
  EffectStage& stage_;
  std::uint64_t draws_ = 0;
};

}  // namespace lockstep
