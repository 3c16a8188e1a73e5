// SPDX-License-Identifier: Apache-2.0
#include "lockstep/test_kit.hpp"

#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "lockstep/map.hpp"
#include "test_messages_generated.h"

namespace lockstep {
namespace {

using namespace testing;
using namespace std::chrono_literals;

struct Bank {
  static constexpr auto name = "bank";
  using Receives = lockstep::Receives<Deposit, Withdraw, GetBalance, Accrue, Do>;
  using Sends = lockstep::Sends<Deposit>;

  Map<std::uint64_t, std::int64_t> accounts;

  void start(Context& cx) { cx.after<Accrue>(24h, 100U); }
  void on(const Deposit& m, Context& cx) { cx.reply<Balance>(m.account(), accounts[m.account()] += m.amount()); }
  void on(const Withdraw& m, Context& cx) {
    if (accounts.get(m.account(), 0) < m.amount()) throw std::runtime_error("insufficient funds");
    cx.reply<Balance>(m.account(), accounts[m.account()] -= m.amount());
  }
  void on(const GetBalance& m, Query& query) const { query.reply<Balance>(m.account(), accounts.get(m.account(), 0)); }
  void on(const Accrue& m, Context& cx) {
    for (auto [account, balance] : accounts) balance += balance * m.rate_ppm() / 1'000'000;
    cx.after<Accrue>(24h, m.rate_ppm());
  }
  void on(const Do& m, Context& cx) {
    if (m.op() == 0) cx.send<Deposit>(ref<Bank>(m.a()), m.b(), 1);
  }
};

/// Breaks the law on request: what the kit is there to catch.
struct Outlaw {
  static constexpr auto name = "outlaw";
  using Receives = lockstep::Receives<Do>;

  std::uint64_t value = 0;

  void on(const Do& m, Context&) {
    static std::uint64_t runs = 0;
    if (m.op() == 1) value = ++runs;
    if (m.op() == 2) value = reinterpret_cast<std::uintptr_t>(this);
  }
};

TEST_CASE("a kit sends, expects, asks and lets time pass") {
  TestKit<Bank> kit;
  const auto bank = ref<Bank>(7);
  kit.send<Deposit>(bank, 1U, 1'000'000);
  CHECK(kit.expect<Balance>([](const Balance& b) { CHECK(b.amount() == 1'000'000); }));
  kit.send<Withdraw>(bank, 2U, 5);
  CHECK(kit.expect_trap(TrapKind::exception));
  const Digest before = kit.hash();
  kit.query<GetBalance>(bank, 1U);
  CHECK(kit.expect<Balance>());
  CHECK(kit.hash() == before);
  kit.advance(48h);
  CHECK(kit.hash() != before);
  kit.query<GetBalance>(bank, 1U);
  CHECK(kit.expect<Balance>([](const Balance& b) { CHECK(b.amount() == 1'000'200); }));
  CHECK(kit.expect_none());
}

TEST_CASE("a kit's time starts where it is told to and stands still otherwise") {
  TestKit<Bank> kit({.start = Time(5s)});
  CHECK(kit.now() == Time(5s));
  kit.send<Do>(ref<Bank>(1), 9U, 0U, 0U, "");
  CHECK(kit.expect_no_reply());
  CHECK(kit.now() == Time(5s));
  kit.advance(1s);
  CHECK(kit.now() == Time(6s));
}

TEST_CASE("messages sent together are one batch, in order") {
  TestKit<Bank> kit;
  kit.together([&] {
    kit.send<Do>(ref<Bank>(1), 0U, 2U, 3U, "");  // reaches bank 2 in the next round
    kit.send<Deposit>(ref<Bank>(2), 3U, 10);
  });
  CHECK(kit.expect<Balance>([](const Balance& b) { CHECK(b.amount() == 10); }));
  CHECK(kit.expect<Balance>([](const Balance& b) { CHECK(b.amount() == 11); }));
  CHECK(kit.expect_none());
}

TEST_CASE("an expectation that does not hold throws what came instead") {
  TestKit<Bank> kit;
  kit.send<Deposit>(ref<Bank>(7), 1U, 10);
  CHECK_THROWS_WITH_AS(kit.expect_none(),
                       "lockstep test kit: expected no more replies, but got a message of type 28c4107c", TestFailure);
  CHECK_THROWS_WITH_AS(kit.expect_trap(TrapKind::exception),
                       "lockstep test kit: expected a trap of kind 1, but got a message of type 28c4107c", TestFailure);
  CHECK_THROWS_WITH_AS(kit.expect<Balance>(),
                       "lockstep test kit: expected lockstep.testing.Balance, but no reply is left", TestFailure);
}

TEST_CASE("an actor that uses what is not history is caught when its history runs again") {
  for (const std::uint32_t op : {0U, 1U, 2U}) {
    CAPTURE(op);
    std::vector<std::string> failures;
    {
      TestKit<Outlaw> kit;
      kit.on_failure([&](const std::string& text) { failures.push_back(text); });
      kit.send<Do>(ref<Outlaw>(1), 0U, 0U, 0U, "");
      kit.send<Do>(ref<Outlaw>(1), op, 0U, 0U, "");
    }
    if (op == 0) {
      CHECK(failures.empty());
      continue;
    }
    REQUIRE(failures.size() == 1);
    CHECK(failures[0].find("first in batch 3, in state, seq 3 lockstep.testing.Do to key 1") != std::string::npos);
  }
}

}  // namespace
}  // namespace lockstep
