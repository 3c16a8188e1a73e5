// SPDX-License-Identifier: Apache-2.0
#include "lockstep/pool.hpp"

#include <doctest/doctest.h>

#include <map>
#include <random>
#include <string>

#include "lockstep/string.hpp"
#include "lockstep/testing/twin_state.hpp"

using lockstep::Handle;
using lockstep::Pool;
using lockstep::String;
using lockstep::testing::ArenaFixture;
using lockstep::testing::TwinState;

namespace {

struct Order {
  Handle<Order> next;
  String name;
  std::uint64_t quantity = 0;
};

struct Book {
  Pool<Order> orders;
};

struct ModelOrder {
  std::uint64_t quantity;
  std::string name;
};
using Model = std::map<std::pair<std::uint32_t, std::uint32_t>, ModelOrder>;

}  // namespace

TEST_SUITE("pool") {
  TEST_CASE("a random history agrees with std::map, stale handles included, through undo and relocation") {
    std::mt19937_64 random(10);
    TwinState<Book> twins;
    Model model;
    std::vector<Handle<Order>> all;  // ever given out and not undone
    for (int step = 0; step < 1000; ++step) {
      const std::uint64_t seed = random();
      const bool keep = random() % 4 != 0;
      const std::uint64_t inserts_of_ten = step / 100 % 2 == 0 ? 7 : 3;
      Model next_model;
      std::vector<Handle<Order>> next_all;
      twins.step(keep, [&](Book& book) {
        std::mt19937_64 ops(seed);
        next_model = model;
        next_all = all;
        for (std::uint64_t n = ops() % 10; n > 0; --n) {
          const std::uint64_t value = ops();
          if (ops() % 10 < inserts_of_ten || next_all.empty()) {
            const std::string name(value % 30, 'n');
            const auto handle = book.orders.insert({{}, String(name), value});
            REQUIRE(next_model.try_emplace({handle.index, handle.generation}, ModelOrder{value, name}).second);
            next_all.push_back(handle);
          } else {
            const auto handle = next_all[value % next_all.size()];
            if (Order* order = book.orders.find(handle)) order->quantity += 1;
            if (const auto at = next_model.find({handle.index, handle.generation}); at != next_model.end()) {
              at->second.quantity += 1;
            }
            const auto gone = next_all[ops() % next_all.size()];
            REQUIRE(book.orders.erase(gone) == (next_model.erase({gone.index, gone.generation}) == 1));
          }
        }
        if (seed % 100 == 0) book.orders = book.orders.clone();
        if (seed % 100 == 1) book.orders.clear(), next_model.clear();
      });
      if (keep) {
        model = next_model;
        all = next_all;
      }
      if (step % 50 == 0) twins.relocate();
      const Book& book = twins.state();
      REQUIRE(book.orders.size() == model.size());
      for (const Handle<Order>& handle : all) {
        const auto expected = model.find({handle.index, handle.generation});
        const Order* const order = book.orders.peek(handle);
        REQUIRE((order != nullptr) == (expected != model.end()));
        if (order == nullptr) continue;
        REQUIRE(order->quantity == expected->second.quantity);
        REQUIRE(order->name == expected->second.name);
      }
    }
    twins.step(true, [](Book& book) { book.orders.clear(); });
    CHECK(twins.owns_nothing());
  }

  TEST_CASE("a handle of an erased object does not name its slot's next tenant") {
    ArenaFixture fixture;
    Pool<std::uint64_t> pool;
    const auto first = pool.insert(1);
    CHECK(pool.erase(first));
    const auto second = pool.insert(2);
    CHECK(second.index == first.index);
    CHECK(pool.peek(first) == nullptr);
    CHECK(!pool.erase(first));
    CHECK(pool[second] == 2);
    CHECK_THROWS_AS(static_cast<void>(pool[first]), std::out_of_range);
    CHECK(pool.peek(Handle<std::uint64_t>{}) == nullptr);
    pool.clear();
    const auto third = pool.insert(3);
    CHECK(pool.peek(second) == nullptr);
    CHECK(pool[third] == 3);
  }

  TEST_CASE("references stay valid while the pool grows") {
    ArenaFixture fixture;
    Pool<std::uint64_t> pool;
    std::uint64_t& first = pool[pool.insert(7)];
    for (std::uint64_t i = 0; i < 10'000; ++i) pool.insert(i);
    CHECK(first == 7);
    first = 8;
    CHECK(pool[Handle<std::uint64_t>{0, 1}] == 8);
  }

  TEST_CASE("objects are visited in order of index, and may be changed on the way") {
    ArenaFixture fixture;
    Pool<std::uint64_t> pool;
    for (std::uint64_t i = 0; i < 100; ++i) pool.insert(i);
    pool.erase({50, 1});
    fixture.commit();
    const auto before = fixture.copy_image();
    std::uint64_t sum = 0;
    pool.for_each([](Handle<std::uint64_t>, std::uint64_t& object) { object += 1; });
    std::as_const(pool).for_each([&sum](Handle<std::uint64_t> handle, const std::uint64_t& object) {
      CHECK(object == handle.index + 1);
      sum += object;
    });
    CHECK(sum == 5050 - 51);
    fixture.undo();
    CHECK(fixture.has_image(before));
  }
}
