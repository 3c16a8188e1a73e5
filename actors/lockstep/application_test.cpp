// SPDX-License-Identifier: Apache-2.0
#include "lockstep/application.hpp"

#include <doctest/doctest.h>

#include <string_view>

#include "lockstep/actor.hpp"
#include "test_messages_bfbs_generated.h"
#include "test_messages_generated.h"

namespace lockstep {
namespace {

using namespace testing;

struct Ledger {
  static constexpr auto name = "ledger";
  static constexpr std::uint64_t arena_bytes = 1U << 20U;
  using Receives = lockstep::Receives<Deposit, Withdraw, GetBalance>;
  using Sends = lockstep::Sends<Pass>;
  using Schema = OrderBinarySchema;

  std::int64_t balance = 0;

  void on(const Deposit& m, Context& cx) { cx.reply<Balance>(m.account(), balance += m.amount()); }
  void on(const Withdraw& m, Context& cx) { cx.reply<Balance>(m.account(), balance -= m.amount()); }
  void on(const GetBalance& m, Query& query) const { query.reply<Balance>(m.account(), balance); }
};

struct Counter {
  static constexpr auto name = "counter";
  using Receives = lockstep::Receives<Bump>;
  using Schema = OrderBinarySchema;

  std::int64_t total = 1;

  void start(Context&) {}
  void on(const Bump& m, Context& cx) { cx.reply<Count>(total += m.amount()); }
};

TEST_CASE("an application finds the handler of each message of each actor type") {
  const Application& app = application<Ledger, Counter>();
  const Handler* const deposit = app.find(name_id("ledger"), message_id<Deposit>);
  REQUIRE(deposit != nullptr);
  CHECK(deposit->message_name == std::string_view("lockstep.testing.Deposit"));
  CHECK_FALSE(deposit->is_query());
  const Handler* const query = app.find(name_id("ledger"), message_id<GetBalance>);
  REQUIRE(query != nullptr);
  CHECK(query->is_query());
  CHECK(app.find(name_id("counter"), message_id<Bump>) != nullptr);
  CHECK(app.find(name_id("counter"), message_id<Deposit>) == nullptr);
  CHECK(app.find(name_id("nobody"), message_id<Bump>) == nullptr);
}

TEST_CASE("an actor type's description says what the runtime needs") {
  const ActorType& ledger = *application<Ledger, Counter>().actor(name_id("ledger"));
  CHECK(ledger.name == std::string_view("ledger"));
  CHECK(ledger.root_bytes == sizeof(Ledger));
  CHECK(ledger.arena_bytes == 1U << 20U);
  CHECK_FALSE(static_cast<bool>(ledger.start));
  CHECK(ledger.sends.size() == 1);
  const ActorType& counter = *application<Ledger, Counter>().actor(name_id("counter"));
  CHECK(counter.arena_bytes == default_arena_bytes);
  CHECK(static_cast<bool>(counter.start));
  CHECK(counter.sends.empty());
  alignas(16) std::byte root[sizeof(Counter)] = {};
  counter.construct(root);
  CHECK(reinterpret_cast<const Counter*>(root)->total == 1);
}

TEST_CASE("whether an application sends is known without running it") {
  CHECK(application<Ledger, Counter>().has_sends());
  CHECK_FALSE(application<Counter>().has_sends());
}

TEST_CASE("an application carries each schema once") {
  const Application& app = application<Ledger, Counter>();
  CHECK(app.schema().size() == 16 + (OrderBinarySchema::size() + 15) / 16 * 16);
  CHECK(app.schema_id() == xxh3_64(app.schema()));
  CHECK(app.digest() != application<Counter>().digest());
}

struct Unexplained {
  static constexpr auto name = "unexplained";
  using Receives = lockstep::Receives<GetBalance>;
  void on(const GetBalance&, Query&) const {}
};

TEST_CASE("an application that gives no schema has no schema id") {
  const Application& app = application<Unexplained>();
  CHECK(app.schema().empty());
  CHECK(app.schema_id() == 0);  // what the journal writes where it has none
}

}  // namespace
}  // namespace lockstep
