// SPDX-License-Identifier: Apache-2.0
#include "lockstep/ring.hpp"

#include <doctest/doctest.h>

#include <deque>
#include <random>
#include <string>

#include "lockstep/string.hpp"
#include "lockstep/testing/twin_state.hpp"

using lockstep::Ring;
using lockstep::String;
using lockstep::testing::ArenaFixture;
using lockstep::testing::Op;
using lockstep::testing::TwinState;

namespace {

struct Queues {
  Ring<std::uint16_t> numbers;
  Ring<String> names;
};

struct Model {
  std::deque<std::uint16_t> numbers;
  std::deque<std::string> names;
};

std::string name_of(std::uint64_t value) {
  return std::string(value % 30, static_cast<char>('a' + value % 26));
}

void run(Queues& queues, const Op& op) {
  auto& [numbers, names] = queues;
  const auto number = static_cast<std::uint16_t>(op.value);
  switch (op.kind) {
    case 0:
      numbers.push_back(number);
      names.push_back(String(name_of(op.value)));
      break;
    case 1:
      numbers.push_front(number);
      names.push_front(String(name_of(op.value)));
      break;
    case 2:
      if (!numbers.empty()) numbers.pop_front(), names.pop_front();
      break;
    case 3:
      if (!numbers.empty()) numbers.pop_back(), names.pop_back();
      break;
    case 4:
      if (!numbers.empty()) numbers[op.key % numbers.size()] = number, names[op.key % names.size()].append("+more");
      break;
    default:
      if (op.key % 50 == 0) numbers.clear(), names.clear();
      if (op.key % 50 == 1) names = names.clone();
      break;
  }
}

void run_on_model(Model& model, const Op& op) {
  auto& [numbers, names] = model;
  const auto number = static_cast<std::uint16_t>(op.value);
  switch (op.kind) {
    case 0:
      numbers.push_back(number);
      names.push_back(name_of(op.value));
      break;
    case 1:
      numbers.push_front(number);
      names.push_front(name_of(op.value));
      break;
    case 2:
      if (!numbers.empty()) numbers.pop_front(), names.pop_front();
      break;
    case 3:
      if (!numbers.empty()) numbers.pop_back(), names.pop_back();
      break;
    case 4:
      if (!numbers.empty()) numbers[op.key % numbers.size()] = number, names[op.key % names.size()].append("+more");
      break;
    default:
      if (op.key % 50 == 0) numbers.clear(), names.clear();
      break;
  }
}

}  // namespace

TEST_SUITE("ring") {
  TEST_CASE("a random history agrees with std::deque, through undo and relocation") {
    std::mt19937_64 random(9);
    TwinState<Queues> twins;
    Model model;
    for (int step = 0; step < 1500; ++step) {
      std::vector<Op> ops(random() % 10 + 1);
      for (Op& op : ops) op = {static_cast<std::uint32_t>(random() % 6), random(), random()};
      const bool keep = random() % 4 != 0;
      twins.step(keep, [&ops](Queues& queues) {
        for (const Op& op : ops) run(queues, op);
      });
      if (keep) {
        for (const Op& op : ops) run_on_model(model, op);
      }
      if (step % 50 == 0) twins.relocate();
      const Queues& queues = twins.state();
      REQUIRE(queues.numbers.size() == model.numbers.size());
      REQUIRE(queues.names.size() == model.names.size());
      for (std::size_t i = 0; i < model.numbers.size(); ++i) {
        REQUIRE(queues.numbers[i] == model.numbers[i]);
        REQUIRE(queues.names[i] == model.names[i]);
      }
    }
    twins.step(true, [](Queues& queues) { queues.numbers.clear(), queues.names.clear(); });
    CHECK(twins.owns_nothing());
  }

  TEST_CASE("a queue of steady length never grows") {
    ArenaFixture fixture;
    Ring<std::uint64_t> ring;
    for (std::uint64_t i = 0; i < 8; ++i) ring.push_back(i);
    const auto before = lockstep::testing::allocated_bytes(fixture);
    for (std::uint64_t i = 8; i < 1000; ++i) {
      ring.pop_front();
      ring.push_back(i);
    }
    CHECK(ring.front() == 992);
    CHECK(ring.back() == 999);
    CHECK(lockstep::testing::allocated_bytes(fixture) == before);
  }

  TEST_CASE("taking from an empty ring throws, and so traps") {
    ArenaFixture fixture;
    Ring<int> ring;
    CHECK_THROWS_AS(ring.pop_front(), std::out_of_range);
    CHECK_THROWS_AS(ring.pop_back(), std::out_of_range);
    CHECK_THROWS_AS(static_cast<void>(ring.front()), std::out_of_range);
    ring.push_front(1);
    CHECK_THROWS_AS(static_cast<void>(ring.peek(1)), std::out_of_range);
  }
}
