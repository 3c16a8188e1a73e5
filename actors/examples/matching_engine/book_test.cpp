// SPDX-License-Identifier: Apache-2.0
#include "book.hpp"

#include <doctest/doctest.h>
#include <lockstep/testing/arena_fixture.hpp>

#include <cstring>
#include <limits>
#include <random>
#include <vector>

#include "book_message.hpp"
#include "model_book.hpp"
#include "order_flow.hpp"

namespace matching {
namespace {

using lockstep::testing::ArenaFixture;

constexpr std::uint64_t arena_bytes = std::uint64_t{1} << 20;

bool same_bytes(std::span<const ExecutionReport> a, std::span<const ExecutionReport> b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size_bytes()) == 0;
}

/// What a book's header promises of it after each call.
void check_book(const Book& book) {
  const std::int64_t bid = book.best_price(Side::Buy);
  const std::int64_t ask = book.best_price(Side::Sell);
  REQUIRE((bid == 0 || ask == 0 || bid < ask));
  std::uint64_t linked = 0;
  for (const Side side : {Side::Buy, Side::Sell}) {
    for (const auto& [rank, level] : book.side(side)) {
      std::uint64_t quantity = 0;
      std::uint64_t orders = 0;
      lockstep::Handle<Order> older;
      for (auto handle = level.first; !handle.is_null(); handle = book.orders[handle].younger) {
        const Order& order = book.orders[handle];
        REQUIRE(order.rank == rank);
        REQUIRE(order.side() == side);
        REQUIRE(order.older == older);
        REQUIRE(order.remaining > 0);
        REQUIRE(book.find(order.key) == &order);
        quantity += order.remaining;
        orders += 1;
        older = handle;
      }
      REQUIRE(level.last == older);
      REQUIRE(orders > 0);
      REQUIRE(level.quantity == quantity);
      REQUIRE(level.orders == orders);
      linked += orders;
    }
  }
  REQUIRE(linked == book.orders.size());
  REQUIRE(linked == book.index.size());
  REQUIRE(linked <= most_orders);
}

/// A flow that seeks trouble: few prices, few numbers, and fields that no order may have.
BookMessage troublesome(std::mt19937_64& random) {
  const auto below = [&random](std::uint64_t bound) { return random() % bound; };
  const OrderKey key{below(3), below(60)};
  switch (below(24)) {
    case 0:
    case 1:
    case 2:
    case 3:
    case 4:
      return {BookMessage::Kind::cancel, {.key = key}};
    case 5:
    case 6:
      return {BookMessage::Kind::reduce, {.key = key}, static_cast<std::uint32_t>(below(40))};
    case 7:
      return {below(8) == 0 ? BookMessage::Kind::halt : BookMessage::Kind::resume};
    default:
      break;
  }
  Entry entry{key, static_cast<Side>(below(2)), static_cast<OrderKind>(below(2) == 0 ? 0 : below(4)),
              static_cast<std::int64_t>(95 + below(11)), static_cast<std::uint32_t>(1 + below(50))};
  if (below(10) == 0) entry.quantity = 500;  // sweeps
  switch (below(100)) {
    case 0:
      entry.side = static_cast<Side>(2 + below(254));
      break;
    case 1:
      entry.kind = static_cast<OrderKind>(4 + below(252));
      break;
    case 2:
      entry.price = below(2) == 0 ? 0 : largest_price + 1;
      break;
    case 3:
      entry.price = std::numeric_limits<std::int64_t>::min();
      break;
    case 4:
      entry.quantity = below(2) == 0 ? 0 : largest_quantity + 1;
      break;
    default:
      break;
  }
  return {BookMessage::Kind::enter, entry};
}

/// Feeds book and model alike; every report must be the same bytes.
class Both {
 public:
  void apply(const BookMessage& message) {
    reports_.clear();
    ++moment_.seq;
    moment_.time_ns += 10;
    matching::apply(message, moment_, book_, reports_);
    REQUIRE(same_bytes(reports_.view(), model_.apply(message, moment_)));
  }
  void check() const {
    check_book(book_);
    for (const Side side : {Side::Buy, Side::Sell}) {
      std::vector<OrderKey> in_book;
      for (const auto& [rank, level] : book_.side(side))
        for (auto handle = level.first; !handle.is_null(); handle = book_.orders[handle].younger)
          in_book.push_back(book_.orders[handle].key);
      std::vector<OrderKey> in_model;
      for (const auto& order : model_.of(side)) in_model.push_back(order.key);
      REQUIRE(in_book == in_model);
    }
  }
  [[nodiscard]] std::span<const ExecutionReport> reports() const { return reports_.view(); }
  [[nodiscard]] Book& book() { return book_; }

 private:
  Moment moment_{.symbol = 7, .seq = 0, .time_ns = 1'000};
  ReportList reports_;
  Book book_;
  ModelBook model_;
};

BookMessage order(std::uint64_t number, Side side, std::int64_t price, std::uint32_t quantity,
                  OrderKind kind = OrderKind::Limit) {
  return {BookMessage::Kind::enter, {{1, number}, side, kind, price, quantity}};
}

}  // namespace

TEST_CASE("a troublesome flow gives the reports and the queues of the model, order by order") {
  for (std::uint64_t seed = 1; seed <= 40; ++seed) {
    CAPTURE(seed);
    std::mt19937_64 random(seed);
    ArenaFixture arena(arena_bytes);
    Both both;
    for (int i = 0; i < 1'500; ++i) {
      CAPTURE(i);
      both.apply(troublesome(random));
      both.check();
      arena.commit();
    }
  }
}

TEST_CASE("a made-up flow of a day's shape gives the reports and the queues of the model") {
  ArenaFixture arena(arena_bytes);
  Both both;
  const OrderFlow flow(3);
  for (std::uint64_t i = 0; i < 4'000; ++i) {
    CAPTURE(i);
    both.apply(flow.at(i));
    if (i % 100 == 0) both.check();
    arena.commit();
  }
  both.check();
}

TEST_CASE("no share is made or lost: what was entered rests, traded twice over, or was taken off") {
  ArenaFixture arena(arena_bytes);
  std::mt19937_64 random(11);
  Book book;
  ReportList reports;
  std::uint64_t asked = 0;
  std::uint64_t traded = 0;
  std::uint64_t taken_off = 0;
  std::uint64_t next_number = 1;
  for (std::uint64_t i = 0; i < 20'000; ++i) {
    const BookMessage message = troublesome(random);
    reports.clear();
    apply(message, {7, i, 0}, book, reports);
    arena.commit();
    bool refused = false;
    for (const ExecutionReport& report : reports.view()) {
      REQUIRE(report.number() == next_number++);
      if (report.event() == Event::Refused) refused = true;
      if (report.event() == Event::Traded) traded += report.quantity();
      if (report.event() == Event::Cancelled || report.event() == Event::Reduced) taken_off += report.quantity();
    }
    if (message.kind == BookMessage::Kind::enter && !refused) asked += message.entry.quantity;
  }
  std::uint64_t rests = 0;
  for (const Side side : {Side::Buy, Side::Sell})
    for (const auto& [rank, level] : book.side(side)) rests += level.quantity;
  CHECK(traded > 0);
  CHECK(asked == rests + 2 * traded + taken_off);
}

TEST_CASE("what is taken back by undo leaves no trace in the arena") {
  ArenaFixture arena(arena_bytes);
  std::mt19937_64 random(5);
  // The book's own bytes are kept by whoever owns them: here by hand, in an actor by the executor.
  struct Root {
    Book book;
  };
  const lockstep::Link at = arena.arena().allocate(sizeof(Root));
  auto* const root = ::new (static_cast<void*>(arena.arena().at(at))) Root;
  arena.commit();
  ReportList reports;
  for (int i = 0; i < 3'000; ++i) {
    const auto before = arena.copy_image();
    const BookMessage message = troublesome(random);
    const bool keeps = random() % 3 != 0;
    arena.arena().before_write(root, sizeof *root);
    reports.clear();
    apply(message, {}, root->book, reports);
    if (keeps) {
      arena.commit();
    } else {
      arena.undo();
      REQUIRE(arena.has_image(before));
    }
    check_book(root->book);
  }
  root->~Root();
}

TEST_CASE("an order trades with the best price first, of one price with the oldest, at the price that rests") {
  ArenaFixture arena(arena_bytes);
  Both both;
  both.apply(order(1, Side::Sell, 102, 10));
  both.apply(order(2, Side::Sell, 101, 10));
  both.apply(order(3, Side::Sell, 101, 10));
  both.apply(order(4, Side::Buy, 102, 25));
  const auto reports = both.reports();
  REQUIRE(reports.size() == 3);
  CHECK(reports[0].resting_order() == 2);
  CHECK(reports[0].price() == 101);
  CHECK(reports[1].resting_order() == 3);
  CHECK(reports[2].resting_order() == 1);
  CHECK(reports[2].price() == 102);
  CHECK(reports[2].quantity() == 5);
  CHECK(reports[2].remaining() == 0);
  CHECK(reports[2].executed() == 25);
  CHECK(reports[2].resting_remaining() == 5);
  CHECK(reports[2].best_ask() == 102);
  CHECK(reports[2].best_bid() == 0);
}

TEST_CASE("a reduced order keeps its place in the queue; one entered anew does not") {
  ArenaFixture arena(arena_bytes);
  Both both;
  for (std::uint64_t number = 1; number <= 3; ++number) both.apply(order(number, Side::Buy, 100, 10));
  both.apply({BookMessage::Kind::reduce, {.key = {1, 1}}, 4});
  both.apply({BookMessage::Kind::cancel, {.key = {1, 2}}});
  both.apply(order(2, Side::Buy, 100, 10));
  both.apply(order(9, Side::Sell, 1, 20, OrderKind::Market));
  const auto reports = both.reports();
  REQUIRE(reports.size() == 3);
  CHECK(reports[0].resting_order() == 1);
  CHECK(reports[0].quantity() == 6);
  CHECK(reports[1].resting_order() == 3);
  CHECK(reports[2].resting_order() == 2);
  CHECK(reports[2].quantity() == 4);
}

TEST_CASE("fill-or-kill trades whole or leaves the book as it was") {
  ArenaFixture arena(arena_bytes);
  Both both;
  both.apply(order(1, Side::Sell, 100, 10));
  both.apply(order(2, Side::Sell, 101, 10));
  both.apply(order(3, Side::Buy, 100, 11, OrderKind::FillOrKill));
  REQUIRE(both.reports().size() == 1);
  CHECK(both.reports()[0].event() == Event::Refused);
  CHECK(both.reports()[0].reason() == Reason::NotFillable);
  both.apply(order(4, Side::Buy, 101, 20, OrderKind::FillOrKill));
  CHECK(both.reports().size() == 2);
  CHECK(both.book().orders.empty());
}

TEST_CASE("one order trades with most_trades others, and what is left of it does not rest above them") {
  ArenaFixture arena(arena_bytes);
  Both both;
  for (std::uint64_t number = 1; number <= most_trades + 5; ++number) both.apply(order(number, Side::Sell, 100, 1));
  both.apply(order(9'000, Side::Buy, 100, most_trades + 1, OrderKind::FillOrKill));
  CHECK(both.reports()[0].reason() == Reason::NotFillable);
  both.apply(order(9'001, Side::Buy, 100, most_trades + 2));
  REQUIRE(both.reports().size() == most_trades + 1);
  CHECK(both.reports().back().event() == Event::Cancelled);
  CHECK(both.reports().back().reason() == Reason::TooManyTrades);
  CHECK(both.reports().back().quantity() == 2);
  both.check();
}

TEST_CASE("while halted the book takes no orders, but gives them back") {
  ArenaFixture arena(arena_bytes);
  Both both;
  both.apply(order(1, Side::Buy, 100, 10));
  both.apply({BookMessage::Kind::halt});
  both.apply(order(2, Side::Sell, 100, 10));
  CHECK(both.reports()[0].reason() == Reason::TradingHalted);
  both.apply({BookMessage::Kind::cancel, {.key = {1, 1}}});
  CHECK(both.reports()[0].event() == Event::Cancelled);
  both.apply({BookMessage::Kind::resume});
  both.apply(order(2, Side::Sell, 100, 10));
  CHECK(both.reports()[0].event() == Event::Entered);
}

}  // namespace matching
