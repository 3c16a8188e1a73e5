// SPDX-License-Identifier: Apache-2.0
#include "runtime/agents/actor_host.hpp"

#include <fmt/format.h>

#include <new>
#include <utility>

#include "base/assert.hpp"
#include "lockstep/context.hpp"
#include "lockstep/query.hpp"
#include "lockstep/timers.hpp"

namespace lockstep {
namespace {

EffectLimits limits_of(const Genesis& genesis) {
  return {genesis.handler_effects, genesis.handler_effect_bytes, genesis.message_bytes};
}

}  // namespace

ActorHost::ActorHost(const Application& application, const Genesis& genesis, std::uint32_t index,
                     std::uint32_t executors)
    : application_(application),
      genesis_(genesis),
      log_(genesis.handler_write_bytes),
      barrier_(log_),
      stage_(limits_of(genesis)),
      shards_(genesis.shards) {
  for (std::uint32_t number = 0; number < genesis.shards; ++number) {
    if (executor_of(number, executors) != index) continue;
    shards_[number] = std::make_unique<Shard>(number, genesis, barrier_);
    owned_.push_back(number);
  }
}

std::span<const std::byte> ActorHost::deliver(const Delivery& delivery, const Home& home, std::uint64_t batch) {
  Shard& shard = *shards_[home.shard];
  EffectBudget& budget = shard.budget(batch);
  stage_.begin(budget);
  const Handler* const handler = application_.find(delivery.target.type, delivery.message_type);
  const bool handled = handler != nullptr && !handler->is_query();
  const TrapKind trap = handled ? run(shard, delivery, home.hash, *handler) : TrapKind::no_handler;
  if (trap == TrapKind::none) {
    budget.effects -= stage_.effect_count();
    budget.bytes -= stage_.staged().size();
  } else {
    ++traps_;
    stage_.replace_by_trap(header_of(delivery), trap);
  }
  hash_effects(shard, stage_.staged());
  return stage_.staged();
}

TrapKind ActorHost::run(Shard& shard, const Delivery& delivery, std::uint64_t hash, const Handler& handler) {
  Actor* actor = shard.find(delivery.target, hash);
  const bool fresh = actor == nullptr;
  if (fresh) {
    actor = shard.create(delivery.target, hash, *application_.actor(delivery.target.type));
    if (actor == nullptr) return TrapKind::arena_exhausted;
  }
  const TrapKind trap = call(*actor, fresh, handler, delivery);
  if (trap != TrapKind::none) {
    barrier_.undo();
    if (fresh) shard.undo_create(hash);
    if (log_sink_ != nullptr) log_undone(delivery, trap);
    return trap;
  }
  barrier_.commit();
  if (!stage_.timers().empty()) index_timers(*actor);
  return TrapKind::none;
}

/// The handler's own lines stand before this one.
void ActorHost::log_undone(const Delivery& delivery, TrapKind trap) {
  LogLine line(delivery.cause_seq, application_.actor(delivery.target.type)->name, delivery.target.key);
  line.add("-- undone: {}", trap_text(trap));
  log_sink_->write(line.text());
}

TrapKind ActorHost::call(Actor& actor, bool fresh, const Handler& handler, const Delivery& delivery) {
  const CurrentArena current(*actor.arena);
  TrapKind trap = TrapKind::none;
  try {
    if (!fresh) {
      if (!actor.arena->begin_step(actor.header, sizeof(ActorHeader) + actor.type->root_bytes))
        throw TrapError{TrapKind::write_budget};
    } else {
      const Link block =
          actor.arena->allocate(static_cast<std::uint32_t>(sizeof(ActorHeader)) + actor.type->root_bytes);
      actor.header = ::new (static_cast<void*>(actor.arena->at(block))) ActorHeader{.self = actor.address};
      actor.root = reinterpret_cast<std::byte*>(actor.header + 1);
      actor.arena->before_write(actor.header, sizeof(ActorHeader) + actor.type->root_bytes);
      actor.type->construct(actor.root);
    }
    actor.header->last_now_ns = std::max(actor.header->last_now_ns, delivery.stamp_ns);
    actor.header->invocations += 1;
    const Invocation invocation{.effect = header_of(delivery),
                                .sender = delivery.sender,
                                .cluster_seed = genesis_.cluster_seed,
                                .may_send = actor.type->sends,
                                .actor_name = actor.type->name,
                                .log = log_sink_};
    Context cx(invocation, *actor.arena, *actor.header, stage_);
    if (fresh && actor.type->start != nullptr) actor.type->start(actor.root, cx);
    handler.handle(actor.root, delivery.payload.data(), cx);
  } catch (const TrapError& error) {
    trap = error.kind;
  } catch (const std::bad_alloc&) {
    LOCKSTEP_ASSERT(false, "the host has no memory left for a handler; that is never a trap");
  } catch (...) {
    trap = TrapKind::exception;
  }
  // What was raised and swallowed counts all the same.
  if (stage_.raised() != TrapKind::none) trap = stage_.raised();
  if (barrier_.raised() != TrapKind::none) trap = barrier_.raised();
  return trap;
}

std::span<const std::byte> ActorHost::answer(const Delivery& query, const Home& home) {
  stage_.begin({genesis_.shard_effects, genesis_.shard_effect_bytes});
  const Handler* const handler = application_.find(query.target.type, query.message_type);
  const Actor* const actor = shards_[home.shard]->find(query.target, home.hash);
  TrapKind trap = TrapKind::none;
  if (handler == nullptr || !handler->is_query()) {
    trap = TrapKind::no_handler;
  } else if (actor == nullptr) {
    trap = TrapKind::no_actor;
  } else {
    const CurrentArena current(*actor->arena);
    try {
      Query context(query.target, Time(Duration(query.stamp_ns)), header_of(query), stage_);
      handler->answer(actor->root, query.payload.data(), context);
    } catch (const TrapError& error) {
      trap = error.kind;
    } catch (...) {
      trap = TrapKind::exception;
    }
    if (stage_.raised() != TrapKind::none) trap = stage_.raised();
  }
  LOCKSTEP_ASSERT(barrier_.used_bytes() == 0, "a query wrote to state: it cast const away");
  if (trap != TrapKind::none) stage_.replace_by_trap(header_of(query), trap);
  return stage_.staged();
}

std::span<const std::byte> ActorHost::refuse(const Delivery& delivery, const Home& home, TrapKind kind) {
  ++traps_;
  stage_.begin({1, effect_bytes(0)});
  stage_.replace_by_trap(header_of(delivery), kind);
  hash_effects(*shards_[home.shard], stage_.staged());
  return stage_.staged();
}

std::span<const std::byte> ActorHost::drop(const EffectHeader& mail, std::uint32_t shard, TrapKind kind) {
  ++traps_;
  EffectHeader header = mail;
  header.length = 0;
  stage_.begin({1, effect_bytes(0)});
  stage_.replace_by_trap(header, kind);
  hash_effects(*shards_[shard], stage_.staged());
  return stage_.staged();
}

EffectStage& ActorHost::begin_own_effects() {
  stage_.begin({});
  return stage_;
}

std::span<const std::byte> ActorHost::end_own_effects(std::uint32_t shard) {
  hash_effects(*shards_[shard], stage_.staged());
  return stage_.staged();
}

std::optional<Delivery> ActorHost::take_timer(const TimerIndex::Entry& entry) {
  const Home home = home_of(entry.actor, genesis_.shards);
  Actor* const actor = shards_[home.shard]->find(entry.actor, home.hash);
  if (actor == nullptr) return std::nullopt;
  ActorTimers timers(*actor->arena, *actor->header);
  const std::optional<DueTimer> due = timers.find(entry.id);
  if (!due) return std::nullopt;
  // A step of its own, so that a timer whose handler traps is gone all the same and not due for ever.
  timer_payload_.assign(due->payload.begin(), due->payload.end());
  const std::uint32_t message_type = due->message_type;
  timers.cancel(entry.id);
  barrier_.commit();
  return Delivery{
      .target = entry.actor, .message_type = message_type, .payload = timer_payload_, .sender = entry.actor};
}

std::int64_t ActorHost::earliest_deadline_ns() {
  while (!timers_.empty() && !has_timer(timers_.earliest())) timers_.pop();
  return timers_.empty() ? INT64_MAX : timers_.earliest().deadline_ns;
}

Result<void> ActorHost::restore_arena(std::uint32_t number, std::uint32_t actor_type, std::uint64_t key,
                                      std::uint64_t image_bytes, const ShardMemory::Fill& fill) {
  Shard& shard = *shards_[number];
  const std::uint32_t index = shard.memory().arena_count();
  if (actor_type == 0) {
    if (key >= Shard::own_arenas) return fail(ErrorCode::corrupt, "a snapshot has a shard's arena that there is not");
    return shard.restore_own(static_cast<std::uint32_t>(key), image_bytes, fill);
  }
  const ActorType* const type = application_.actor(actor_type);
  const Address address{actor_type, 0, key};
  if (type == nullptr || home_of(address, genesis_.shards).shard != number)
    return fail(ErrorCode::incompatible,
                fmt::format("arena {} of shard {} of a snapshot is of an actor that this program does not have there",
                            index, number));
  const auto actor = shard.restore_actor(address, *type, image_bytes, fill);
  if (!actor) return std::unexpected(actor.error());
  ActorTimers(*(*actor)->arena, *(*actor)->header).for_each([&](std::int64_t deadline_ns, TimerId id) {
    timers_.add({deadline_ns, address, id});
  });
  return {};
}

EffectHeader ActorHost::header_of(const Delivery& delivery) const {
  EffectHeader header;
  header.origin = delivery.origin;
  header.cause_seq = delivery.cause_seq;
  header.cause_time_ns = delivery.stamp_ns;
  header.session = delivery.session;
  header.request = delivery.request;
  header.set_sender(delivery.target);
  return header;
}

void ActorHost::index_timers(const Actor& actor) {
  for (const StagedTimer& timer : stage_.timers()) {
    timers_.sweep([this](const TimerIndex::Entry& entry) { return has_timer(entry); });
    timers_.add({timer.deadline_ns, actor.address, TimerId{timer.id}});
  }
}

bool ActorHost::has_timer(const TimerIndex::Entry& entry) {
  const Home home = home_of(entry.actor, genesis_.shards);
  const Actor* const actor = shards_[home.shard]->find(entry.actor, home.hash);
  return actor != nullptr && ActorTimers(*actor->arena, *actor->header).find(entry.id).has_value();
}

void ActorHost::hash_effects(Shard& shard, std::span<const std::byte> effects) {
  while (!effects.empty()) {
    const std::size_t bytes = effect_bytes(reinterpret_cast<const EffectHeader*>(effects.data())->length);
    shard.effects = chain_effect(shard.effects, effects.first(bytes));
    effects = effects.subspan(bytes);
  }
}

}  // namespace lockstep
