// SPDX-License-Identifier: Apache-2.0
// The bank on the production executor: from a stamped record to a reply.
#include <doctest/doctest.h>

#include <chrono>
#include <optional>

#include "lockstep/actor.hpp"
#include "runtime/agents/frames.hpp"
#include "runtime/agents/memory_history.hpp"
#include "runtime/agents/replica.hpp"
#include "test_messages_generated.h"

namespace lockstep {
namespace {

using namespace testing;
using namespace std::chrono_literals;

struct Bank {
  static constexpr auto name = "bank";
  using Receives = lockstep::Receives<Deposit, Withdraw, GetBalance, Accrue>;

  std::int64_t balances[8] = {};
  std::uint64_t rejected = 0;
  std::uint64_t accrued = 0;

  void start(Context& cx) { cx.after<Accrue>(24h, 50U); }

  void on(const Deposit& m, Context& cx) {
    if (m.amount() <= 0) return reject(m.account(), m.amount(), cx);
    balances[m.account()] += m.amount();
    cx.reply<Balance>(m.account(), balances[m.account()]);
  }
  void on(const Withdraw& m, Context& cx) {
    balances[m.account()] -= m.amount();
    cx.reply<Balance>(m.account(), balances[m.account()]);
    if (balances[m.account()] < 0) throw std::runtime_error("insufficient funds");
  }
  void on(const GetBalance& m, Query& query) const { query.reply<Balance>(m.account(), balances[m.account()]); }
  void on(const Accrue& m, Context& cx) {
    for (std::int64_t& balance : balances) balance += balance * m.rate_ppm() / 1'000'000;
    ++accrued;
    cx.after<Accrue>(24h, m.rate_ppm());
  }

  void reject(std::uint64_t account, std::int64_t amount, Context& cx) {
    ++rejected;
    cx.reply<Rejected>(account, amount);
  }
};

/// One client of one bank, at hand.
class BankTest {
 public:
  explicit BankTest(std::uint32_t executors = 1)
      : history_(genesis(), 0, 0),
        replica_(application<Bank>(), genesis(), {.executors = executors, .replies = &replies_}) {
    replica_.run(history_.batch(0));
  }

  template <class M, class... Args>
  void send(const Args&... args) {
    history_.add({.target = bank.address(),
                  .message_type = message_id<M>,
                  .session = session_number(0, 0, 1),
                  .request = ++request_},
                 builder_.encode<M>(args...), now_ns);
    replica_.run(history_.seal(now_ns));
  }
  void tick() { replica_.run(history_.seal(now_ns)); }

  /// The next reply, if it is an M.
  template <class M>
  [[nodiscard]] const M* reply() {
    const auto* const frame = next();
    if (frame == nullptr || frame->outcome != Outcome::reply || frame->message_type != message_id<M>) return nullptr;
    return &decode<M>(reinterpret_cast<const std::byte*>(frame + 1));
  }
  [[nodiscard]] TrapKind trap() {
    const auto* const frame = next();
    if (frame == nullptr || frame->outcome != Outcome::trapped) return TrapKind::none;
    return static_cast<TrapKind>(frame->detail);
  }

  Ref<Bank> bank = ref<Bank>(7);
  std::int64_t now_ns = 0;
  [[nodiscard]] MemoryHistory& history() { return history_; }
  [[nodiscard]] Replica& replica() { return replica_; }

 private:
  static Genesis genesis() {
    return {.application = application<Bank>().digest(), .checkpoint_interval = 4, .shard_memory_bytes = 1U << 30U};
  }
  const ReplyFrame* next() {
    if (peeked_) replies_.release();
    const auto frame = replies_.peek();
    peeked_ = !frame.empty();
    return peeked_ ? reinterpret_cast<const ReplyFrame*>(frame.data()) : nullptr;
  }

  MessageBuilder builder_{65536};
  ByteRing replies_{1U << 20U};
  MemoryHistory history_;
  Replica replica_;
  std::uint64_t request_ = 0;
  bool peeked_ = false;
};

TEST_CASE("a stamped message runs its handler and is answered") {
  BankTest test;
  test.send<Deposit>(1U, 100);
  test.send<Deposit>(1U, 20);
  test.send<Deposit>(1U, -5);
  const Balance* balance = test.reply<Balance>();
  REQUIRE(balance != nullptr);
  CHECK(balance->amount() == 100);
  balance = test.reply<Balance>();
  REQUIRE(balance != nullptr);
  CHECK(balance->amount() == 120);
  const Rejected* const rejected = test.reply<Rejected>();
  REQUIRE(rejected != nullptr);
  CHECK(rejected->amount() == -5);
}

TEST_CASE("a handler that throws is undone and its client gets an error") {
  BankTest test;
  test.send<Deposit>(1U, 100);
  const Digest before = test.replica().end().root;
  test.send<Withdraw>(1U, 500);
  CHECK(test.replica().end().root == before);
  REQUIRE(test.reply<Balance>() != nullptr);
  CHECK(test.trap() == TrapKind::exception);
  test.send<Withdraw>(1U, 100);
  const Balance* const balance = test.reply<Balance>();
  REQUIRE(balance != nullptr);
  CHECK(balance->amount() == 0);
}

TEST_CASE("a timer fires at stamped time") {
  BankTest test;
  test.send<Deposit>(1U, 1'000'000);
  CHECK(test.replica().next_due_ns() == std::chrono::nanoseconds(24h).count());
  test.now_ns = std::chrono::nanoseconds(24h).count();
  test.tick();
  CHECK(test.replica().next_due_ns() == std::chrono::nanoseconds(48h).count());
  test.send<Deposit>(1U, 1);
  REQUIRE(test.reply<Balance>() != nullptr);
  const Balance* const balance = test.reply<Balance>();
  REQUIRE(balance != nullptr);
  CHECK(balance->amount() == 1'000'051);
}

TEST_CASE("the same history gives the same roots, effects and chain with any number of executors") {
  BankTest test;
  for (int i = 0; i < 40; ++i) test.send<Deposit>(static_cast<unsigned>(i % 8), i - 3);
  for (const std::uint32_t executors : {1U, 2U, 4U}) {
    Replica again(application<Bank>(), test.history().genesis(), {.executors = executors});
    for (std::size_t i = 0; i < test.history().size(); ++i) again.run(test.history().batch(i));
    CHECK(again.end() == test.replica().end());
    CHECK(again.checkpoints() == test.replica().checkpoints());
    CHECK(again.checkpoints().size() == 10);
  }
}

}  // namespace
}  // namespace lockstep
