// SPDX-License-Identifier: Apache-2.0
#pragma once

/// EffectStage: where the effects of the handler in execution wait, in memory taken once, until the handler is done.
/// Then the executor flushes them, or drops them if it trapped. Limits are counted here, from the
/// configuration in the history, so that a trap is the same on every machine.
///
/// An effect is an EffectHeader and its payload, zeros up to a multiple of 16; the same bytes are hashed into the
/// history's effects and travel to the receiving executor. One thread; belongs to an executor.
///
///      0        4      5        6      8              12       16          24           32        40
///     +--------+------+--------+------+--------------+--------+-----------+------------+---------+---------+
///     | length | kind | detail | trap | message type | origin | cause seq | cause time | session | request |
///     +--------+------+--------+------+--------------+--------+-----------+------------+---------+---------+
///     | sender type | target type | sender key | target key | counter | payload, zeros to 16 ...
///     +-------------+-------------+------------+------------+---------+
///      48            52            56           64           72        80

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <new>
#include <span>
#include <type_traits>
#include <utility>

#include "base/assert.hpp"
#include "base/digest.hpp"
#include "lockstep/address.hpp"
#include "lockstep/encode.hpp"
#include "lockstep/trap.hpp"

namespace lockstep {

enum class EffectKind : std::uint8_t {
  nothing = 0,  ///< tells a client that its request has no reply
  reply = 1,    ///< to the client whose request is the cause
  send = 2,     ///< to an actor
  trap = 3,     ///< the handler had no effect but this one
  refusal = 4,  ///< tells a client that its request did not run, or cannot be answered again; detail says why
  session = 5,  ///< tells a client's connection what became of its session; detail is the event
};

struct EffectHeader {
  std::uint32_t length = 0;  ///< payload bytes
  EffectKind kind = EffectKind::reply;
  std::uint8_t detail = 0;
  TrapKind trap = TrapKind::none;
  std::uint32_t message_type = 0;
  std::uint32_t origin = 0;        ///< the shard that the session's request came to: it answers the client
  std::uint64_t cause_seq = 0;     ///< seq of the record, or first seq of the batch for timers, that it all began with
  std::int64_t cause_time_ns = 0;  ///< stamp of that cause
  std::uint64_t session = 0;       ///< whose request is the cause; 0 is nobody's
  std::uint64_t request = 0;
  std::uint32_t sender_type = 0;  ///< who emitted it
  std::uint32_t target_type = 0;  ///< the receiving actor; nobody for what goes to a client
  std::uint64_t sender_key = 0;
  std::uint64_t target_key = 0;
  std::uint64_t counter = 0;  ///< of a send or a reply: the sender's send counter

  [[nodiscard]] Address sender() const { return {sender_type, 0, sender_key}; }
  [[nodiscard]] Address target() const { return {target_type, 0, target_key}; }
  void set_sender(const Address& address) {
    sender_type = address.type;
    sender_key = address.key;
  }
  void set_target(const Address& address) {
    target_type = address.type;
    target_key = address.key;
  }
};
static_assert(sizeof(EffectHeader) == 80 && alignof(EffectHeader) == 8);
static_assert(offsetof(EffectHeader, origin) == 12 && offsetof(EffectHeader, cause_seq) == 16);
static_assert(offsetof(EffectHeader, session) == 32 && offsetof(EffectHeader, sender_type) == 48);
static_assert(offsetof(EffectHeader, sender_key) == 56 && offsetof(EffectHeader, counter) == 72);
static_assert(std::has_unique_object_representations_v<EffectHeader>);

/// The running hash over effects, with one more: XXH3-128 of its bytes, seeded with the low half of the hash so far,
/// whose high half is added to the result's.
[[nodiscard]] inline Digest chain_effect(const Digest& effects, std::span<const std::byte> effect) {
  Digest chained = xxh3_128(effect, effects.low);
  chained.high += effects.high;
  return chained;
}

/// Bytes an effect takes in the stage and on its way.
[[nodiscard]] constexpr std::size_t effect_bytes(std::size_t payload_bytes) {
  return sizeof(EffectHeader) + ((payload_bytes + 15) & ~std::size_t{15});
}

/// What a handler may do before it traps; part of the history.
struct EffectLimits {
  std::uint32_t handler_effects = 1024;           ///< replies, sends and timers
  std::uint32_t handler_effect_bytes = 1U << 20;  ///< of their headers and payloads
  std::uint32_t message_bytes = 256U << 10;       ///< of one payload
};

/// What is left to a shard in this batch.
struct EffectBudget {
  std::uint64_t effects = 0;
  std::uint64_t bytes = 0;
};

/// A timer that the handler set: the executor's index of deadlines learns of it when the handler is done.
struct StagedTimer {
  std::int64_t deadline_ns = 0;
  std::uint64_t id = 0;
};

class EffectStage {
 public:
  explicit EffectStage(const EffectLimits& limits)
      : limits_(limits),
        builder_(limits.message_bytes),
        block_(static_cast<std::byte*>(::operator new(limits.handler_effect_bytes, std::align_val_t{64}))),
        timers_(new StagedTimer[limits.handler_effects]) {}

  /// Empties the stage for the next handler, whose shard has `budget` left.
  void begin(const EffectBudget& budget) {
    budget_ = budget;
    used_bytes_ = 0;
    effects_ = 0;
    timer_count_ = 0;
    raised_ = TrapKind::none;
  }

  /// Adds an effect whose payload is an `M` and whose header begins as `header`, which needs no length and no message
  /// type; the staged header, to be completed before the next effect. Throws TrapError at a limit.
  template <Message M, class... Args>
  EffectHeader& add(const EffectHeader& header, const Args&... args) {
    count_one();
    if constexpr (!detail::check_fields<M, Args...>()) {
      std::unreachable();
    } else if constexpr (has_fixed_size<M>) {
      const auto& layout = builder_.layout_of<M>();
      EffectHeader& staged = open(header, layout.bytes());
      layout.write(payload_of(staged), args...);
      staged.message_type = message_id<M>;
      return staged;
    } else {
      const std::span<const std::byte> payload = encode<M>(args...);
      EffectHeader& staged = open(header, payload.size());
      fill(staged, payload);
      staged.message_type = message_id<M>;
      return staged;
    }
  }

  /// The bytes of an `M`, valid until the next effect: for a timer, which keeps them in the actor's arena.
  template <Message M, class... Args>
  [[nodiscard]] std::span<const std::byte> encode(const Args&... args) {
    try {
      return builder_.encode<M>(args...);
    } catch (const TrapError& trap) {
      raise(trap.kind);
    }
  }

  /// Counts a timer as an effect and remembers it for the index.
  void add_timer(const StagedTimer& timer) {
    count_one();
    timers_[timer_count_++] = timer;
  }

  /// Ends the handler, whatever it catches: the executor asks raised().
  [[noreturn]] void raise(TrapKind kind) {
    if (raised_ == TrapKind::none) raised_ = kind;
    throw TrapError{raised_};
  }

  /// Adds an effect that no handler made: what the executor itself says. It counts against no limit but the block.
  void add_bytes(const EffectHeader& header, std::span<const std::byte> payload) {
    LOCKSTEP_ASSERT(lockstep::effect_bytes(payload.size()) <= limits_.handler_effect_bytes - used_bytes_,
                    "an effect outgrew the stage");
    fill(stage(header, payload.size()), payload);
  }

  /// All that was staged makes way for one effect of kind `trap`.
  void replace_by_trap(EffectHeader header, TrapKind kind) {
    header.kind = EffectKind::trap;
    header.trap = kind;
    std::memcpy(block_.get(), &header, sizeof header);
    used_bytes_ = sizeof header;
    effects_ = 1;
    timer_count_ = 0;
  }

  [[nodiscard]] TrapKind raised() const { return raised_; }
  [[nodiscard]] std::span<const std::byte> staged() const { return {block_.get(), used_bytes_}; }
  [[nodiscard]] std::span<const StagedTimer> timers() const { return {timers_.get(), timer_count_}; }
  [[nodiscard]] std::uint32_t effect_count() const { return effects_; }

 private:
  struct Deallocate {
    void operator()(std::byte* block) const { ::operator delete(block, std::align_val_t{64}); }
  };

  /// Room for one more effect of a handler; its payload is to be written.
  EffectHeader& open(const EffectHeader& header, std::size_t payload_bytes) {
    if (payload_bytes > limits_.message_bytes) raise(TrapKind::effect_bytes);
    const std::size_t bytes = lockstep::effect_bytes(payload_bytes);
    if (bytes > limits_.handler_effect_bytes - used_bytes_) raise(TrapKind::effect_bytes);
    if (used_bytes_ + bytes > budget_.bytes) raise(TrapKind::shard_budget);
    return stage(header, payload_bytes);
  }
  EffectHeader& stage(const EffectHeader& header, std::size_t payload_bytes) {
    auto* const staged = ::new (static_cast<void*>(block_.get() + used_bytes_)) EffectHeader(header);
    staged->length = static_cast<std::uint32_t>(payload_bytes);
    used_bytes_ += static_cast<std::uint32_t>(lockstep::effect_bytes(payload_bytes));
    return *staged;
  }
  [[nodiscard]] static std::byte* payload_of(EffectHeader& staged) { return reinterpret_cast<std::byte*>(&staged + 1); }
  static void fill(EffectHeader& staged, std::span<const std::byte> payload) {
    std::byte* const to = payload_of(staged);
    if (!payload.empty()) std::memcpy(to, payload.data(), payload.size());
    std::memset(to + payload.size(), 0, -payload.size() & 15U);
  }

  void count_one() {
    if (raised_ != TrapKind::none) raise(raised_);
    if (effects_ == limits_.handler_effects) raise(TrapKind::too_many_effects);
    if (effects_ == budget_.effects) raise(TrapKind::shard_budget);
    ++effects_;
  }

  EffectLimits limits_;
  EffectBudget budget_;
  MessageBuilder builder_;
  std::unique_ptr<std::byte, Deallocate> block_;
  std::unique_ptr<StagedTimer[]> timers_;
  std::uint32_t used_bytes_ = 0;
  std::uint32_t effects_ = 0;
  std::uint32_t timer_count_ = 0;
  TrapKind raised_ = TrapKind::none;
};

}  // namespace lockstep
