// SPDX-License-Identifier: Apache-2.0
#include "bench/actors/lockstep_runtime.hpp"

#include <fmt/format.h>

#include <cstring>
#include <span>

#include "bank.hpp"
#include "base/assert.hpp"
#include "base/clock.hpp"
#include "base/cpu_relax.hpp"
#include "bench/support/cpu.hpp"
#include "runtime/agents/frames.hpp"
#include "runtime/agents/sequencer.hpp"
#include "runtime/execution.hpp"
#include "runtime/runner.hpp"

namespace lockstep::bench {
namespace {

/// The accounts as an actor with hashed state; its messages are the bank's.
struct Teller {
  static constexpr auto name = "teller";
  using Receives = lockstep::Receives<bank::Transfer, bank::GetBalance>;
  using Schema = bank::DepositBinarySchema;

  lockstep::Vector<std::int64_t> balances;

  void start(Context&) {
    balances.resize(account_count);
    for (std::int64_t& balance : balances) balance = first_balance;
  }
  void on(const bank::Transfer& m, Context& cx) {
    if (balances.peek(m.from()) < m.amount())
      return cx.reply<bank::Rejected>(m.from(), bank::Reason::InsufficientFunds);
    balances[m.from()] -= m.amount();
    balances[m.to()] += m.amount();
    cx.reply<bank::Transferred>(m.from(), m.to(), m.amount());
  }
  void on(const bank::GetBalance& m, Query& q) const {
    q.reply<bank::Balance>(m.account(), balances.peek(m.account()));
  }
};

const Application& tellers() {
  return application<Teller>();
}

Genesis genesis_of_tellers() {
  Genesis genesis;
  genesis.application = tellers().digest();
  return genesis;
}

class LockstepRuntime final : public ActorRuntime {
 public:
  LockstepRuntime(Answers& answers, const LockstepShape& shape)
      : answers_(answers),
        shape_(shape),
        execution_(tellers(), genesis_of_tellers(),
                   {.executors = shape.executors, .perimeters = 1, .slabs = 16, .max_batch_bytes = 256U << 10}),
        sequencer_(execution_.pool(), {}, {.seal_depth = 1, .schema_id = tellers().schema_id()}),
        builder_(4096),
        now_{clock_.real_ns(), clock_.steady_ns()} {
    for (unsigned i = 0; i < shape.executors; ++i) sequencer_.add_due(execution_.due(i));
    sequencer_.append_genesis(encode(genesis_of_tellers()), now_.real_ns);
    for (unsigned i = 0; i < shape.executors; ++i) {
      const int cpu = allowed_cpus()[(i + 1) % allowed_cpus().size()];
      runners_.push_back(std::make_unique<Runner>(
          RunnerOptions{.name = fmt::format("executor-{}", i), .cpu = cpu, .spin_ns = never_sleep_ns}, clock_, nullptr,
          std::vector<Agent*>{&execution_.agent(i)}));
      runners_.back()->start();
    }
  }

  bool send(const Transaction& transaction) override {
    const auto payload = builder_.encode<bank::Transfer>(transaction.from, transaction.to, transaction.amount);
    std::byte* const room = sequencer_.claim(payload.size());
    if (room == nullptr) return false;
    std::memcpy(room, payload.data(), payload.size());
    RecordHeader header;
    header.length = static_cast<std::uint32_t>(payload.size());
    header.actor_type = name_id(Teller::name);
    header.message_type = message_id<bank::Transfer>;
    header.key = transaction.number % shape_.actors;
    header.session = session;
    header.request = transaction.number;
    header.check = record_check(header, payload);
    sequencer_.commit(header, now_.real_ns);
    return true;
  }

  void turn() override {
    now_ = {clock_.real_ns(), clock_.steady_ns()};
    sequencer_.do_work(now_);
    BatchPool& pool = execution_.pool();
    pool.written().publish(pool.sealed());
    pool.committed().publish(pool.sealed());
    while (execution_.board().poll()) {
    }
    for (unsigned i = 0; i < shape_.executors; ++i) take_replies(i);
  }

  std::vector<std::int64_t> balances() override {
    std::vector<std::int64_t> all;
    for (std::uint64_t actor = 0; actor < shape_.actors; ++actor) {
      for (std::uint64_t account = 0; account < account_count; ++account) all.push_back(ask_balance(actor, account));
    }
    return all;
  }

 private:
  static constexpr std::int64_t never_sleep_ns = 3'600'000'000'000;
  static constexpr std::uint64_t session = session_number(1, 0, 1);

  void take_replies(unsigned executor) {
    ByteRing& replies = execution_.replies(executor, 0);
    for (auto frame = replies.peek(); !frame.empty(); frame = replies.peek()) {
      const auto& reply = *reinterpret_cast<const ReplyFrame*>(frame.data());
      LOCKSTEP_ASSERT(reply.outcome == Outcome::reply, "every transaction is answered");
      answers_.take(reply.request, reply.message_type == message_id<bank::Transferred>);
      replies.release();
    }
    replies.flush();
  }

  std::int64_t ask_balance(std::uint64_t actor, std::uint64_t account) {
    const std::uint32_t owner = execution_.owner(ref<Teller>(actor).address());
    const auto payload = builder_.encode<bank::GetBalance>(account);
    const QueryFrame query{.route = session,
                           .request = account,
                           .key = actor,
                           .actor_type = name_id(Teller::name),
                           .message_type = message_id<bank::GetBalance>,
                           .length = static_cast<std::uint32_t>(payload.size())};
    ByteRing& queries = execution_.queries(owner, 0);
    const std::span<std::byte> room = queries.claim(sizeof query + payload.size());
    LOCKSTEP_ASSERT(!room.empty(), "one query is under way at a time");
    std::memcpy(room.data(), &query, sizeof query);
    std::memcpy(room.data() + sizeof query, payload.data(), payload.size());
    queries.publish();
    ByteRing& replies = execution_.replies(owner, 0);
    auto frame = replies.peek();
    for (; frame.empty(); frame = replies.peek()) cpu_relax();
    const std::int64_t amount = flatbuffers::GetRoot<bank::Balance>(frame.data() + sizeof(ReplyFrame))->amount();
    replies.release();
    replies.flush();
    return amount;
  }

  Answers& answers_;
  LockstepShape shape_;
  SystemClock clock_;
  Execution execution_;
  Sequencer sequencer_;
  MessageBuilder builder_;
  Now now_;
  std::vector<std::unique_ptr<Runner>> runners_;  // the last: their threads end first
};

}  // namespace

std::unique_ptr<ActorRuntime> make_lockstep(Answers& answers, const LockstepShape& shape) {
  return std::make_unique<LockstepRuntime>(answers, shape);
}

}  // namespace lockstep::bench
