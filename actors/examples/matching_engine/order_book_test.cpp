// SPDX-License-Identifier: Apache-2.0
#include "order_book.hpp"

#include <doctest/doctest.h>
#include <lockstep/test_kit.hpp>

#include <cstring>

#include "model_book.hpp"
#include "order_flow.hpp"

namespace matching {
namespace {

using Kit = lockstep::TestKit<OrderBook>;

constexpr std::uint64_t symbol = 7;
constexpr auto book = lockstep::ref<OrderBook>(symbol);

void send(Kit& kit, const BookMessage& message, lockstep::Ref<OrderBook> to = book) {
  as_request(message, [&]<class M>(const auto&... fields) { kit.send<M>(to, fields...); });
}

void limit(Kit& kit, std::uint64_t number, Side side, std::int64_t price, std::uint32_t quantity) {
  kit.send<NewOrder>(book, std::uint64_t{1}, number, side, OrderKind::Limit, price, quantity);
}

}  // namespace

// At the end of each, the kit runs it all again, at other addresses and on three executors, and compares the bits.

TEST_CASE("an order is answered with its trades and what became of the rest") {
  Kit kit;
  limit(kit, 1, Side::Sell, 101, 30);
  limit(kit, 2, Side::Buy, 102, 50);
  kit.expect<Reports>([](const Reports& m) {
    REQUIRE(m.reports()->size() == 1);
    CHECK(m.reports()->Get(0)->event() == Event::Entered);
    CHECK(m.reports()->Get(0)->symbol() == symbol);
  });
  kit.expect<Reports>([&](const Reports& m) {
    REQUIRE(m.reports()->size() == 2);
    CHECK(m.reports()->Get(0)->event() == Event::Traded);
    CHECK(m.reports()->Get(0)->price() == 101);
    CHECK(m.reports()->Get(0)->time_ns() == kit.now().time_since_epoch().count());
    CHECK(m.reports()->Get(1)->event() == Event::Entered);
    CHECK(m.reports()->Get(1)->quantity() == 20);
    CHECK(m.reports()->Get(1)->best_bid() == 102);
  });
  kit.query<GetOrder>(book, std::uint64_t{1}, std::uint64_t{2});
  kit.expect<OpenOrder>([](const OpenOrder& m) {
    CHECK(m.side() == Side::Buy);
    CHECK(m.price() == 102);
    CHECK(m.remaining() == 20);
    CHECK(m.executed() == 30);
  });
  kit.query<GetOrder>(book, std::uint64_t{1}, std::uint64_t{1});
  kit.expect<NoOrder>();
  CHECK(kit.expect_none());
}

TEST_CASE("depth is told best first, as far as asked") {
  Kit kit;
  for (std::uint64_t i = 0; i < 150; ++i) {
    limit(kit, 10 + i, Side::Buy, 500 - static_cast<std::int64_t>(i), 10);
    limit(kit, 1'000 + i, Side::Sell, 501 + static_cast<std::int64_t>(i / 2), 5);
    kit.expect<Reports>();
    kit.expect<Reports>();
  }
  kit.query<GetDepth>(book, 2U);
  kit.expect<Depth>([](const Depth& m) {
    REQUIRE(m.bids()->size() == 2);
    REQUIRE(m.asks()->size() == 2);
    CHECK(m.bids()->Get(0)->price() == 500);
    CHECK(m.bids()->Get(1)->price() == 499);
    CHECK(m.asks()->Get(0)->price() == 501);
    CHECK(m.asks()->Get(0)->quantity() == 10);
    CHECK(m.asks()->Get(0)->orders() == 2);
    CHECK(m.orders() == 300);
    CHECK(m.reports() == 300);
    CHECK(!m.halted());
  });
  kit.query<GetDepth>(book, 4'000'000'000U);
  kit.expect<Depth>([](const Depth& m) {
    CHECK(m.bids()->size() == most_depth_levels);
    CHECK(m.asks()->size() == 75);
  });
}

TEST_CASE("books of many symbols give what the model gives, and the same bits again") {
  constexpr std::uint64_t books = 8;
  Kit kit;
  ModelBook models[books];
  const OrderFlow flows[books] = {OrderFlow(1), OrderFlow(2), OrderFlow(3), OrderFlow(4),
                                  OrderFlow(5), OrderFlow(6), OrderFlow(7), OrderFlow(8)};
  for (std::uint64_t i = 0; i < 400; ++i) {
    kit.together([&] {
      for (std::uint64_t key = 0; key < books; ++key) send(kit, flows[key].at(i), lockstep::ref<OrderBook>(key));
    });
    // Replies of one batch come shard by shard; a report says whose it is.
    for (std::uint64_t n = 0; n < books; ++n) {
      kit.expect<Reports>([&](const Reports& m) {
        const ExecutionReport& first = *m.reports()->Get(0);
        const auto expected =
            models[first.symbol()].apply(flows[first.symbol()].at(i), {first.symbol(), first.seq(), first.time_ns()});
        REQUIRE(m.reports()->size() == expected.size());
        REQUIRE(std::memcmp(m.reports()->Data(), expected.data(), expected.size() * sizeof expected[0]) == 0);
      });
    }
  }
}

TEST_CASE("a book holds most_orders orders, each at a price of its own, and refuses one more") {
  Kit kit;
  constexpr std::uint32_t batch = 256;
  for (std::uint32_t first = 0; first < most_orders; first += batch) {
    kit.together([&] {
      for (std::uint32_t i = first; i < first + batch; ++i)
        limit(kit, i, i < most_orders / 2 ? Side::Buy : Side::Sell, 1 + i, 1);
    });
    for (std::uint32_t i = 0; i < batch; ++i)
      kit.expect<Reports>([](const Reports& m) { REQUIRE(m.reports()->Get(0)->event() == Event::Entered); });
  }
  limit(kit, most_orders, Side::Sell, most_orders + 1, 1);
  kit.expect<Reports>([](const Reports& m) {
    CHECK(m.reports()->Get(0)->event() == Event::Refused);
    CHECK(m.reports()->Get(0)->reason() == Reason::BookFull);
  });
  kit.send<NewOrder>(book, std::uint64_t{2}, std::uint64_t{1}, Side::Buy, OrderKind::Market, std::int64_t{0}, 1U);
  kit.expect<Reports>([](const Reports& m) { CHECK(m.reports()->Get(0)->event() == Event::Traded); });
  limit(kit, most_orders, Side::Sell, most_orders + 1, 1);
  kit.expect<Reports>([](const Reports& m) { CHECK(m.reports()->Get(0)->event() == Event::Entered); });
}

TEST_CASE("the largest answer, of an order that trades with most_trades others, fits into a message") {
  Kit kit;
  for (std::uint32_t i = 0; i <= most_trades; ++i) {
    limit(kit, i, Side::Sell, 100 + i, 1);
    kit.expect<Reports>();
  }
  limit(kit, 9'000, Side::Buy, 10'000, most_trades + 1);
  kit.expect<Reports>([](const Reports& m) {
    REQUIRE(m.reports()->size() == most_trades + 1);
    CHECK(m.reports()->Get(most_trades)->reason() == Reason::TooManyTrades);
  });
}

}  // namespace matching
