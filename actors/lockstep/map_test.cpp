// SPDX-License-Identifier: Apache-2.0
#include "lockstep/map.hpp"

#include <doctest/doctest.h>

#include <map>
#include <random>
#include <string>

#include "lockstep/testing/twin_state.hpp"
#include "lockstep/vector.hpp"

using lockstep::Map;
using lockstep::String;
using lockstep::Vector;
using lockstep::testing::allocated_bytes;
using lockstep::testing::ArenaFixture;
using lockstep::testing::Op;
using lockstep::testing::TwinState;

namespace {

struct Price {
  std::int64_t level = 0;
  std::uint64_t order = 0;
  auto operator<=>(const Price&) const = default;
};
struct Wide {
  std::uint64_t words[40] = {};
  bool operator==(const Wide&) const = default;
};

struct Numbers {
  using Model = std::map<std::uint64_t, std::int64_t>;
  Map<std::uint64_t, std::int64_t> map;
  static std::uint64_t key(std::uint64_t n) { return n; }
  static std::int64_t value(std::uint64_t n) { return static_cast<std::int64_t>(n); }
};
struct Strings {  // keys in and out of line, values that own memory
  using Model = std::map<std::string, std::string>;
  Map<String, String> map;
  static std::string key(std::uint64_t n) { return std::to_string(n * 7919) + std::string(n % 3 * 10, 'k'); }
  static String value(std::uint64_t n) { return String(std::to_string(n)); }
};
struct Levels {  // few entries a leaf
  using Model = std::map<Price, Wide>;
  Map<Price, Wide> map;
  static Price key(std::uint64_t n) { return {-static_cast<std::int64_t>(n / 4), n}; }
  static Wide value(std::uint64_t n) { return {{n, n + 1}}; }
};
struct Sides {  // 8-bit keys: many to a leaf
  using Model = std::map<std::uint8_t, bool>;
  Map<std::uint8_t, bool> map;
  static std::uint8_t key(std::uint64_t n) { return static_cast<std::uint8_t>(n); }
  static bool value(std::uint64_t n) { return n % 2 != 0; }
};

template <class State>
void run(State& state, const Op& op) {
  const auto key = State::key(op.key);
  switch (op.kind) {
    case 0:
      state.map[key] = State::value(op.value);
      break;
    case 1:
      static_cast<void>(state.map.insert(key, State::value(op.value)));
      break;
    case 2:
      static_cast<void>(state.map.erase(key));
      break;
    case 3:
      if (auto* value = state.map.find(key)) *value = State::value(op.value);
      break;
    default:
      if (const auto at = state.map.lower_bound(key); at != state.map.end()) state.map.erase(at);
      break;
  }
}

template <class State>
void apply_to_model(typename State::Model& model, const Op& op) {
  const auto key = State::key(op.key);
  using Value = typename State::Model::mapped_type;
  const auto value = [&op] { return Value(State::value(op.value)); };
  switch (op.kind) {
    case 0:
      model[key] = value();
      break;
    case 1:
      model.try_emplace(key, value());
      break;
    case 2:
      model.erase(key);
      break;
    case 3:
      if (const auto at = model.find(key); at != model.end()) at->second = value();
      break;
    default:
      if (const auto at = model.lower_bound(key); at != model.end()) model.erase(at);
      break;
  }
}

template <class State>
void check_equal(const State& state, const typename State::Model& model, std::uint64_t probe) {
  REQUIRE(state.map.size() == model.size());
  auto at = state.map.begin();
  for (const auto& [key, value] : model) {
    REQUIRE(at != state.map.end());
    REQUIRE(at->key() == key);
    REQUIRE(at->value() == value);
    ++at;
  }
  REQUIRE(at == state.map.end());
  for (auto expected = model.rbegin(); expected != model.rend(); ++expected) REQUIRE((--at)->key() == expected->first);
  const auto key = State::key(probe);
  const auto bound = model.upper_bound(key);
  REQUIRE((state.map.upper_bound(key) == state.map.end()) == (bound == model.end()));
  if (bound != model.end()) REQUIRE(state.map.upper_bound(key)->key() == bound->first);
  REQUIRE(state.map.contains(key) == model.contains(key));
}

template <class State>
void run_random_history(std::uint64_t seed, int steps, std::uint64_t keys) {
  std::mt19937_64 random(seed);
  TwinState<State> twins;
  typename State::Model model;
  for (int step = 0; step < steps; ++step) {
    const bool growing = step / 100 % 2 == 0;  // fill, then drain, in turns
    std::vector<Op> ops(random() % 20 + 1);
    for (Op& op : ops) {
      const std::uint64_t kind = random() % 10;
      op = {growing ? (kind < 6 ? 0U : static_cast<std::uint32_t>(kind - 5))
                    : (kind < 6 ? 2U : static_cast<std::uint32_t>(kind - 5)),
            random() % keys, random() % 1'000'000};
    }
    const bool keep = random() % 4 != 0;
    twins.step(keep, [&ops](State& state) {
      for (const Op& op : ops) run(state, op);
    });
    if (keep)
      for (const Op& op : ops) apply_to_model<State>(model, op);
    if (step % 5 == 0) check_equal(twins.state(), model, random() % keys);
    if (step % 50 == 0) twins.relocate();
  }
  check_equal(twins.state(), model, 0);
  twins.step(true, [](State& state) { state.map.erase_if([](const auto&, const auto&) { return true; }); });
  CHECK(twins.owns_nothing());
}

}  // namespace

TEST_SUITE("map") {
  TEST_CASE("a random history of integer keys agrees with std::map, through undo and relocation") {
    run_random_history<Numbers>(3, 600, 2000);
  }
  TEST_CASE("a random history of string keys agrees with std::map, through undo and relocation") {
    run_random_history<Strings>(4, 600, 1000);
  }
  TEST_CASE("a random history of aggregate keys and wide values agrees with std::map") {
    run_random_history<Levels>(5, 600, 500);
  }
  TEST_CASE("a random history of small keys agrees with std::map") {
    run_random_history<Sides>(6, 600, 256);
  }

  TEST_CASE("a million entries in random order go in, are found, and go out again") {
    ArenaFixture fixture(std::uint64_t{1} << 26, std::size_t{1} << 24);
    Map<std::uint64_t, std::uint64_t> map;
    constexpr std::uint64_t n = 1'000'000;
    const auto key = [](std::uint64_t i) { return i * 0x9E3779B97F4A7C15ULL; };
    for (std::uint64_t i = 0; i < n; ++i) map[key(i)] = i;
    CHECK(map.size() == n);
    std::uint64_t wrong = 0, before = 0;
    for (std::uint64_t i = 0; i < n; ++i) wrong += map.get(key(i), n) != i;
    for (const auto& [at, value] : std::as_const(map)) {
      wrong += at < before;
      before = at;
    }
    CHECK(wrong == 0);
    for (std::uint64_t i = 0; i < n; ++i) wrong += !map.erase(key(i));
    CHECK(wrong == 0);
    CHECK(map.empty());
    CHECK(allocated_bytes(fixture) == 0);
  }

  TEST_CASE("keys that only grow fill their leaves") {
    ArenaFixture fixture(std::uint64_t{1} << 24, std::size_t{1} << 26);
    Map<std::uint64_t, std::uint64_t> map;
    for (std::uint64_t i = 0; i < 100'000; ++i) map[i] = i;
    CHECK(allocated_bytes(fixture) < 100'000 * 19);  // 16 bytes an entry, and little else
  }

  TEST_CASE("a walk over a map that is not const may change values") {
    ArenaFixture fixture;
    Map<std::uint32_t, std::uint32_t> map;
    for (std::uint32_t i = 0; i < 1000; ++i) map[i] = i;
    fixture.commit();
    const auto before = fixture.copy_image();
    for (auto& [key, value] : map) value += key;
    CHECK(map.get(500, 0) == 1000);
    fixture.undo();
    CHECK(fixture.has_image(before));
  }

  TEST_CASE("peek, get, contains and a const walk write nothing") {
    ArenaFixture fixture;
    Map<std::uint64_t, std::uint64_t> map;
    for (std::uint64_t i = 0; i < 100; ++i) map[i] = i;
    fixture.commit();
    CHECK(*map.peek(5) == 5);
    CHECK(map.get(100, 7) == 7);
    CHECK(!map.contains(100));
    std::uint64_t sum = 0;
    for (const auto& [key, value] : std::as_const(map)) sum += value;
    CHECK(sum == 4950);
    CHECK(fixture.barrier().used_bytes() == 0);
  }

  TEST_CASE("maps of maps and of vectors are cloned with all they hold") {
    ArenaFixture fixture;
    const auto start = allocated_bytes(fixture);
    {
      Map<String, Map<std::uint64_t, Vector<String>>> map;
      map["a book with a long name"][3].emplace_back("a string of more than twelve bytes");
      map["b"][4].emplace_back("x");
      const auto copy = map.clone();
      CHECK(copy == map);
      map["b"][4][0].append("y");
      CHECK(!(copy == map));
      CHECK(copy.peek("b")->peek(4)->peek(0) == "x");
    }
    CHECK(allocated_bytes(fixture) == start);
  }
}
