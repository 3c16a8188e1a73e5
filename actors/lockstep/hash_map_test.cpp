// SPDX-License-Identifier: Apache-2.0
#include "lockstep/hash_map.hpp"

#include <doctest/doctest.h>

#include <array>
#include <random>
#include <string>
#include <unordered_map>

#include "lockstep/testing/twin_state.hpp"
#include "lockstep/vector.hpp"

using lockstep::HashMap;
using lockstep::String;
using lockstep::Vector;
using lockstep::testing::allocated_bytes;
using lockstep::testing::ArenaFixture;
using lockstep::testing::Op;
using lockstep::testing::TwinState;

namespace {

struct Numbers {
  using Model = std::unordered_map<std::uint64_t, std::uint32_t>;  // slots have padding, which must stay zero
  HashMap<std::uint64_t, std::uint32_t> map;
  static std::uint64_t key(std::uint64_t n) { return n << 32; }
  static std::uint32_t value(std::uint64_t n) { return static_cast<std::uint32_t>(n); }
};
struct Strings {
  using Model = std::unordered_map<std::string, std::string>;
  HashMap<String, String> map;
  static std::string key(std::uint64_t n) { return std::to_string(n) + std::string(n % 3 * 10, 'k'); }
  static std::string value(std::uint64_t n) { return std::string(n % 30, 'v'); }
};

template <class State>
void run(State& state, const Op& op) {
  using Value = std::remove_cvref_t<decltype(*state.map.peek(State::key(0)))>;
  const auto key = State::key(op.key);
  switch (op.kind) {
    case 0:
      state.map[key] = Value(State::value(op.value));
      break;
    case 1:
      static_cast<void>(state.map.insert(key, Value(State::value(op.value))));
      break;
    case 2:
      static_cast<void>(state.map.erase(key));
      break;
    case 3:
      if (auto* value = state.map.find(key)) *value = Value(State::value(op.value));
      break;
    default:
      if (op.value % 100 == 0) state.map = state.map.clone();
      if (op.value % 100 == 1) state.map.reserve(state.map.size() * 2);
      break;
  }
}

template <class State>
void run_on_model(typename State::Model& model, const Op& op) {
  const auto key = State::key(op.key);
  switch (op.kind) {
    case 0:
      model[key] = State::value(op.value);
      break;
    case 1:
      model.try_emplace(key, State::value(op.value));
      break;
    case 2:
      model.erase(key);
      break;
    case 3:
      if (const auto at = model.find(key); at != model.end()) at->second = State::value(op.value);
      break;
    default:
      break;
  }
}

template <class State>
void run_random_history(std::uint64_t seed, int steps, std::uint64_t keys) {
  std::mt19937_64 random(seed);
  TwinState<State> twins;
  typename State::Model model;
  for (int step = 0; step < steps; ++step) {
    const std::uint32_t often = step / 100 % 2 == 0 ? 0 : 2;  // fill, then drain, in turns
    std::vector<Op> ops(random() % 20 + 1);
    for (Op& op : ops) {
      const auto kind = static_cast<std::uint32_t>(random() % 10);
      op = {kind < 5 ? often : kind - 5, random() % keys, random() % 1'000'000};
    }
    const bool keep = random() % 4 != 0;
    twins.step(keep, [&ops](State& state) {
      for (const Op& op : ops) run(state, op);
    });
    if (keep) {
      for (const Op& op : ops) run_on_model<State>(model, op);
    }
    if (step % 50 == 0) twins.relocate();
    if (step % 5 != 0) continue;
    const State& state = twins.state();
    REQUIRE(state.map.size() == model.size());
    for (std::uint64_t n = 0; n < keys; ++n) {
      const auto expected = model.find(State::key(n));
      const auto* const found = state.map.peek(State::key(n));
      REQUIRE((found != nullptr) == (expected != model.end()));
      if (found != nullptr) REQUIRE(*found == expected->second);
    }
  }
  twins.step(true, [keys](State& state) {
    for (std::uint64_t n = 0; n < keys; ++n) state.map.erase(State::key(n));
    REQUIRE(state.map.empty());
    state.map.clear();
  });
  CHECK(twins.owns_nothing());
}

}  // namespace

TEST_SUITE("hash_map") {
  TEST_CASE("a random history of integer keys agrees with std::unordered_map, through undo and relocation") {
    run_random_history<Numbers>(7, 1000, 500);
  }
  TEST_CASE("a random history of string keys agrees with std::unordered_map, through undo and relocation") {
    run_random_history<Strings>(8, 600, 300);
  }

  TEST_CASE("two hundred thousand entries go in, are found, and go out again") {
    ArenaFixture fixture(std::uint64_t{1} << 25, std::size_t{1} << 24);
    HashMap<std::uint64_t, std::uint64_t> map;
    constexpr std::uint64_t n = 200'000;
    for (std::uint64_t i = 0; i < n; ++i) map[i] = i;
    std::uint64_t wrong = 0;
    for (std::uint64_t i = 0; i < 2 * n; ++i) wrong += map.get(i, n) != (i < n ? i : n);
    for (std::uint64_t i = 0; i < n; ++i) wrong += !map.erase(i);
    CHECK(wrong == 0);
    CHECK(map.empty());
    map.clear();
    CHECK(allocated_bytes(fixture) == 0);
  }

  TEST_CASE("an emptied table holds no trace of what was in it") {
    ArenaFixture fixture;
    HashMap<std::uint64_t, std::uint64_t> map;
    map.reserve(200);
    fixture.commit();
    const auto before = fixture.copy_image();
    for (std::uint64_t i = 0; i < 200; ++i) map[i * 977] = i;
    for (std::uint64_t i = 200; i-- > 0;) map.erase(i * 977);
    CHECK(fixture.has_image(before));
  }

  TEST_CASE("hashes of regular keys spread over low and high bits alike") {
    using Traits = lockstep::detail::KeyTraits<std::uint64_t>;
    for (const unsigned shift : {0U, 8U, 20U, 32U, 44U, 52U}) {
      std::array<int, 256> low{};
      std::array<int, 128> high{};
      for (std::uint64_t i = 0; i < 4096; ++i) {
        const std::uint64_t hash = Traits::hash(i << shift);
        ++low[hash & 255];
        ++high[hash >> 57];
      }
      CHECK(*std::ranges::max_element(low) < 16 * 3);
      CHECK(*std::ranges::max_element(high) < 32 * 3);
    }
  }

  TEST_CASE("the hash is the same in every build: it decides where entries lie in an image") {
    CHECK(lockstep::detail::KeyTraits<std::uint64_t>::hash(1) == 1249036477177077854ULL);
    CHECK(lockstep::detail::KeyTraits<String>::hash("lockstep") == 3397684732174618860ULL);
  }

  TEST_CASE("values that own memory move and go with their entries") {
    ArenaFixture fixture;
    const auto start = allocated_bytes(fixture);
    {
      HashMap<String, Vector<String>> map;
      for (int i = 0; i < 100; ++i) map["a key of more than twelve bytes" + std::to_string(i)].emplace_back("value");
      for (int i = 0; i < 100; i += 2) map.erase("a key of more than twelve bytes" + std::to_string(i));
      const auto copy = map.clone();
      CHECK(copy == map);
      CHECK(map.size() == 50);
      const auto moved = std::move(map);
      CHECK(moved.peek("a key of more than twelve bytes7")->peek(0) == "value");
      CHECK(map.empty());  // NOLINT(bugprone-use-after-move): empty by contract
    }
    CHECK(allocated_bytes(fixture) == start);
  }
}
