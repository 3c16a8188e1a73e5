// SPDX-License-Identifier: Apache-2.0
#include "lockstep/string.hpp"

#include <doctest/doctest.h>

#include <random>
#include <string>

#include "lockstep/testing/twin_state.hpp"

using lockstep::String;
using lockstep::testing::allocated_bytes;
using lockstep::testing::ArenaFixture;
using lockstep::testing::Op;
using lockstep::testing::TwinState;

namespace {

struct Text {
  String text;
};

std::string piece(const Op& op) {
  std::string bytes(op.key % (op.value % 5 == 0 ? 300 : 20), '\0');
  for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<char>((op.value >> (i % 8)) + i);
  return bytes;
}

template <class Target>
void run(Target& text, const Op& op) {
  switch (op.kind) {
    case 0:
      text.assign(piece(op));
      break;
    case 1:
      text.append(piece(op));
      break;
    case 2:
      text.push_back('x');
      break;
    default:
      text.clear();
      break;
  }
}

}  // namespace

TEST_SUITE("string") {
  TEST_CASE("a random history agrees with std::string, through undo and relocation") {
    std::mt19937_64 random(2);
    TwinState<Text> twins;
    std::string model;
    for (int step = 0; step < 3000; ++step) {
      Op op{static_cast<std::uint32_t>(random() % 3), random(), random()};
      if (random() % 100 == 0) op.kind = 3;
      const bool keep = random() % 4 != 0;
      twins.step(keep, [&op](Text& state) { run(state.text, op); });
      if (keep) run(model, op);
      REQUIRE(twins.state().text == model);
      if (step % 50 == 0) twins.relocate();
    }
    twins.step(true, [](Text& state) { state.text.clear(); });
    CHECK(twins.owns_nothing());
  }

  TEST_CASE("up to twelve bytes take no block, and shrinking to them gives the block back") {
    ArenaFixture fixture;
    String text("twelve bytes");
    CHECK(allocated_bytes(fixture) == 0);
    text.push_back('!');
    CHECK(allocated_bytes(fixture) == 32);
    text.truncate(12);
    CHECK(allocated_bytes(fixture) == 0);
    CHECK(text == "twelve bytes");
  }

  TEST_CASE("equal short strings are equal bytes, whatever they held before") {
    ArenaFixture fixture;
    String fresh("abc");
    String used("something much longer than that");
    used.assign("abcdefghij");
    used.truncate(3);
    CHECK(std::memcmp(&fresh, &used, sizeof(String)) == 0);
  }

  TEST_CASE("a part of a string may be assigned and appended to itself") {
    ArenaFixture fixture;
    String text("0123456789abcdef");
    text.append(text.view().substr(10));
    text.append(text.view());
    CHECK(text == "0123456789abcdefabcdef0123456789abcdefabcdef");
    text.assign(text.view().substr(3, 20));
    CHECK(text == "3456789abcdefabcdef0");
    text.assign(text.view().substr(5, 4));
    CHECK(text == "89ab");
  }

  TEST_CASE("strings are ordered by bytes as unsigned, the shorter first") {
    ArenaFixture fixture;
    CHECK(String("a") < String("b"));
    CHECK(String("a") < String("aa"));
    CHECK(String("z") < String("\xC3\xA9"));
    CHECK(String("same as the other one") == String("same as the other one"));
    CHECK(String("abc") > "abb");
  }

  TEST_CASE("moving hands the block over") {
    ArenaFixture fixture;
    String from("a string of more than twelve bytes");
    String to = std::move(from);
    CHECK(from.empty());  // NOLINT(bugprone-use-after-move): empty by contract
    CHECK(to.size() == 34);
    from = to.clone();
    CHECK(from == to);
  }
}
