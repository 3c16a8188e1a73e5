// SPDX-License-Identifier: Apache-2.0
#include "lockstep/optional.hpp"

#include <doctest/doctest.h>

#include <optional>
#include <random>
#include <string>

#include "lockstep/array.hpp"
#include "lockstep/string.hpp"
#include "lockstep/testing/twin_state.hpp"
#include "lockstep/vector.hpp"

using lockstep::Array;
using lockstep::Optional;
using lockstep::String;
using lockstep::Vector;
using lockstep::testing::allocated_bytes;
using lockstep::testing::ArenaFixture;
using lockstep::testing::TwinState;

namespace {

struct Slots {
  Array<Optional<String>, 4> names;
  Vector<Optional<std::uint32_t>> numbers;
};

std::string name_of(std::uint64_t value) {
  return std::string(value % 30, static_cast<char>('a' + value % 26));
}

}  // namespace

TEST_SUITE("optional and array") {
  TEST_CASE("a random history agrees with std::optional, through undo and relocation") {
    std::mt19937_64 random(11);
    TwinState<Slots> twins;
    std::array<std::optional<std::string>, 4> names;
    std::vector<std::optional<std::uint32_t>> numbers;
    for (int step = 0; step < 2000; ++step) {
      const std::uint64_t kind = random() % 5, at = random() % 4, value = random();
      const auto number = static_cast<std::uint32_t>(value);
      const bool keep = random() % 4 != 0;
      const auto change = [=](auto& texts, auto& values, auto make_text) {
        if (kind == 0) texts[at].emplace(make_text(name_of(value)));
        if (kind == 1) texts[at].reset();
        if (kind == 2) texts[at] = std::move(texts[(at + 1) % 4]);
        if (kind == 2) texts[(at + 1) % 4].reset();
        if (kind == 3) values.emplace_back(number);
        if (kind == 4 && !values.empty()) values[value % values.size()].reset();
      };
      twins.step(keep, [&](Slots& slots) {
        change(slots.names, slots.numbers, [](const std::string& text) { return String(text); });
      });
      if (keep) change(names, numbers, [](const std::string& text) { return text; });
      if (step % 50 == 0) twins.relocate();
      const Slots& slots = twins.state();
      for (std::size_t i = 0; i < 4; ++i) {
        REQUIRE(slots.names[i].has_value() == names[i].has_value());
        if (names[i]) REQUIRE(*slots.names[i] == *names[i]);
      }
      REQUIRE(slots.numbers.size() == numbers.size());
      for (std::size_t i = 0; i < numbers.size(); ++i) {
        REQUIRE(slots.numbers[i].value_or(7) == numbers[i].value_or(7));
      }
    }
    twins.step(true, [](Slots& slots) {
      for (auto& name : slots.names) name.reset();
      slots.numbers.clear();
    });
    CHECK(twins.owns_nothing());
  }

  TEST_CASE("an emptied optional is zero bytes, and gives back what it held") {
    ArenaFixture fixture;
    Optional<String> text(String("a string of more than twelve bytes"));
    const auto copy = text.clone();
    CHECK(copy == text);
    text.reset();
    const Optional<String> fresh;
    CHECK(std::memcmp(&text, &fresh, sizeof text) == 0);
    CHECK(!(copy == text));
    CHECK_THROWS_AS(static_cast<void>(*text), std::out_of_range);
    CHECK(allocated_bytes(fixture) == 48);
  }

  TEST_CASE("an array checks its index") {
    Array<std::uint32_t, 3> levels{{1, 2, 3}};
    CHECK(levels[2] == 3);
    CHECK_THROWS_AS(static_cast<void>(levels[3]), std::out_of_range);
    levels.fill(9);
    CHECK(levels == Array<std::uint32_t, 3>{{9, 9, 9}});
  }
}
