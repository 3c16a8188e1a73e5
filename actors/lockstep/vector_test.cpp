// SPDX-License-Identifier: Apache-2.0
#include "lockstep/vector.hpp"

#include <doctest/doctest.h>

#include <random>
#include <stdexcept>
#include <string>

#include "lockstep/string.hpp"
#include "lockstep/testing/twin_state.hpp"

using lockstep::String;
using lockstep::Vector;
using lockstep::testing::allocated_bytes;
using lockstep::testing::ArenaFixture;
using lockstep::testing::Op;
using lockstep::testing::TwinState;

namespace {

struct Row {
  std::uint64_t id = 7;  // a default value that is not zero
  String name;
  bool operator==(const Row&) const = default;
};

struct Table {
  Vector<std::uint32_t> numbers;
  Vector<Row> rows;
};

struct ModelRow {
  std::uint64_t id = 7;
  std::string name;
};

struct Model {
  std::vector<std::uint32_t> numbers;
  std::vector<ModelRow> rows;
};

std::string name_of(std::uint64_t value) {
  return std::string(value % 40, static_cast<char>('a' + value % 26));
}

void run(Table& table, const Op& op) {
  auto& [numbers, rows] = table;
  const auto number = static_cast<std::uint32_t>(op.value);
  switch (op.kind) {
    case 0:
      numbers.push_back(number);
      rows.push_back({op.value, String(name_of(op.value))});
      break;
    case 1:
      if (!numbers.empty()) numbers.pop_back();
      if (!rows.empty()) rows.pop_back();
      break;
    case 2:
      numbers.insert(op.key % (numbers.size() + 1), number);
      rows.insert(op.key % (rows.size() + 1), {op.value, String(name_of(op.value))});
      break;
    case 3:
      if (!numbers.empty()) numbers.erase(op.key % numbers.size());
      if (!rows.empty()) rows.erase(op.key % rows.size());
      break;
    case 4:
      if (!numbers.empty()) numbers[op.key % numbers.size()] = number;
      if (!rows.empty()) rows[op.key % rows.size()].name.append("+more");
      break;
    case 5:
      for (auto& each : numbers) each += 1;
      for (auto& row : rows) row.id ^= op.value;
      break;
    case 6:
      numbers.resize(op.key % 64);
      rows.resize(op.key % 64);
      break;
    default:
      if (op.key % 8 == 0) numbers.clear();
      if (op.key % 8 == 1) rows = rows.clone();
      break;
  }
}

void run(Model& model, const Op& op) {
  auto& [numbers, rows] = model;
  const auto number = static_cast<std::uint32_t>(op.value);
  const auto at = [&op](auto& list, std::size_t size) {
    return list.begin() + static_cast<std::ptrdiff_t>(op.key % size);
  };
  switch (op.kind) {
    case 0:
      numbers.push_back(number);
      rows.push_back({op.value, name_of(op.value)});
      break;
    case 1:
      if (!numbers.empty()) numbers.pop_back();
      if (!rows.empty()) rows.pop_back();
      break;
    case 2:
      numbers.insert(at(numbers, numbers.size() + 1), number);
      rows.insert(at(rows, rows.size() + 1), {op.value, name_of(op.value)});
      break;
    case 3:
      if (!numbers.empty()) numbers.erase(at(numbers, numbers.size()));
      if (!rows.empty()) rows.erase(at(rows, rows.size()));
      break;
    case 4:
      if (!numbers.empty()) *at(numbers, numbers.size()) = number;
      if (!rows.empty()) at(rows, rows.size())->name.append("+more");
      break;
    case 5:
      for (auto& each : numbers) each += 1;
      for (auto& row : rows) row.id ^= op.value;
      break;
    case 6:
      numbers.resize(op.key % 64);
      rows.resize(op.key % 64);
      break;
    default:
      if (op.key % 8 == 0) numbers.clear();
      break;
  }
}

void check_equal(const Table& table, const Model& model) {
  REQUIRE(std::ranges::equal(table.numbers.view(), model.numbers));
  REQUIRE(table.rows.size() == model.rows.size());
  for (std::size_t i = 0; i < model.rows.size(); ++i) {
    REQUIRE(table.rows[i].id == model.rows[i].id);
    REQUIRE(table.rows[i].name == model.rows[i].name);
  }
}

}  // namespace

TEST_SUITE("vector") {
  TEST_CASE("a random history agrees with std::vector, through undo and relocation") {
    std::mt19937_64 random(1);
    TwinState<Table> twins;
    Model model;
    for (int step = 0; step < 1500; ++step) {
      std::vector<Op> ops(random() % 6 + 1);
      for (Op& op : ops) op = {static_cast<std::uint32_t>(random() % 8), random(), random()};
      const bool keep = random() % 4 != 0;
      twins.step(keep, [&](Table& table) {
        for (const Op& op : ops) run(table, op);
      });
      if (keep)
        for (const Op& op : ops) run(model, op);
      check_equal(twins.state(), model);
      if (step % 50 == 0) twins.relocate();
    }
    twins.step(true, [](Table& table) { table.numbers.clear(), table.rows.clear(); });
    CHECK(twins.owns_nothing());
  }

  TEST_CASE("an index past the size throws, and so traps") {
    ArenaFixture fixture;
    Vector<int> vector;
    CHECK_THROWS_AS(static_cast<void>(vector[0]), std::out_of_range);
    CHECK_THROWS_AS(vector.pop_back(), std::out_of_range);
    vector.push_back(1);
    CHECK(vector[0] == 1);
    CHECK_THROWS_WITH_AS(static_cast<void>(vector.peek(1)), "lockstep::Vector: index 1 is not below its size, 1",
                         std::out_of_range);
    CHECK_THROWS_AS(vector.insert(2, 1), std::out_of_range);
    CHECK_THROWS_AS(vector.erase(0, 2), std::out_of_range);
  }

  TEST_CASE("an element may be pushed into its own vector while it grows") {
    ArenaFixture fixture;
    Vector<String> vector;
    vector.emplace_back("a string of more than twelve bytes");
    for (int i = 0; i < 100; ++i) vector.emplace_back(vector.peek(0).view());
    CHECK(vector.back() == "a string of more than twelve bytes");
  }

  TEST_CASE("temporaries and moved-from vectors give their memory back") {
    ArenaFixture fixture;
    const auto start = allocated_bytes(fixture);
    {
      Vector<Vector<std::uint64_t>> outer;
      Vector<std::uint64_t> inner;
      inner.assign({1, 2, 3});
      outer.push_back(std::move(inner));
      outer.push_back(outer.peek(0).clone());
      CHECK(inner.empty());  // NOLINT(bugprone-use-after-move): empty by contract
      CHECK(outer.peek(0) == outer.peek(1));
      Vector<Vector<std::uint64_t>> other = std::move(outer);
      CHECK(other.size() == 2);
    }
    CHECK(allocated_bytes(fixture) == start);
  }

  TEST_CASE("a vector that grows past the arena traps and can be undone") {
    ArenaFixture fixture(1 << 16);
    const auto before = fixture.copy_image();
    const auto fill = [] {
      Vector<std::uint64_t> vector;
      for (std::uint64_t i = 0; i < 100'000; ++i) vector.push_back(i);
    };
    CHECK_THROWS_AS(fill(), lockstep::TrapError);
    CHECK(fixture.barrier().raised() == lockstep::TrapKind::arena_exhausted);
    fixture.undo();
    CHECK(fixture.has_image(before));
  }
}
