// SPDX-License-Identifier: Apache-2.0
#include "order_flow.hpp"

#include <doctest/doctest.h>

#include <map>
#include <set>

#include "flow_run.hpp"

namespace matching {

TEST_CASE("a flow has a LOBSTER file's mix of messages, and is a function of seed and number") {
  const OrderFlow flow(9);
  std::map<BookMessage::Kind, int> kinds;
  std::map<OrderKind, int> orders;
  std::set<std::uint64_t> numbers;
  constexpr int messages = 40'000;
  for (std::uint64_t i = 0; i < messages; ++i) {
    const BookMessage message = flow.at(i);
    ++kinds[message.kind];
    if (message.kind != BookMessage::Kind::enter) continue;
    ++orders[message.entry.kind];
    REQUIRE(numbers.insert(message.entry.key.order).second);
    REQUIRE(message.entry.price > 0);
    REQUIRE(message.entry.price % OrderFlow::price_step == 0);
  }
  CHECK(orders[OrderKind::Limit] == messages * 17 / 40);
  CHECK(kinds[BookMessage::Kind::cancel] == messages * 17 / 40);
  CHECK(kinds[BookMessage::Kind::reduce] == messages * 2 / 40);
  CHECK(kinds[BookMessage::Kind::enter] == messages * 21 / 40);
  CHECK(OrderFlow(9).at(77).entry.key == flow.at(77).entry.key);
  CHECK(OrderFlow(10).at(77).entry.price != flow.at(77).entry.price);
}

TEST_CASE("each order of a flow is cancelled once, after it was entered") {
  const OrderFlow flow(4);
  std::map<OrderKey, std::uint64_t> entered;
  std::set<OrderKey> cancelled;
  std::uint64_t of_before = 0;
  for (std::uint64_t i = 0; i < 100'000; ++i) {
    const BookMessage message = flow.at(i);
    if (message.kind == BookMessage::Kind::enter && message.entry.kind == OrderKind::Limit)
      entered[message.entry.key] = i;
    if (message.kind != BookMessage::Kind::cancel) continue;
    REQUIRE(cancelled.insert(message.entry.key).second);
    if (entered.contains(message.entry.key)) {
      REQUIRE(i - entered[message.entry.key] > 2 * 40);
    } else {
      ++of_before;
      REQUIRE(i < 1'200 * 40);
    }
  }
  CHECK(of_before == 2'507);
}

TEST_CASE("a flow keeps its book filled, at a size with a bound, and most of its cancels in time") {
  FlowRun run(1);
  std::uint64_t late = 0;
  std::uint64_t trades = 0;
  std::uint64_t reports = 0;
  for (std::uint64_t i = 0; i < 200'000; ++i) {
    for (const ExecutionReport& report : run.next()) {
      if (i < 50'000) continue;
      ++reports;
      late += report.reason() == Reason::UnknownOrder ? 1U : 0U;
      trades += report.event() == Event::Traded ? 1U : 0U;
    }
    if (i < 2'000) continue;
    REQUIRE(run.book().best_price(Side::Buy) > 0);
    REQUIRE(run.book().best_price(Side::Sell) > 0);
  }
  CHECK(run.book().orders.size() > 500);
  CHECK(run.book().orders.size() < 3'000);
  CHECK(trades * 20 > reports);
  CHECK(late * 10 < reports);
}

}  // namespace matching
