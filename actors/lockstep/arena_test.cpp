// SPDX-License-Identifier: Apache-2.0
#include "lockstep/arena.hpp"

#include <doctest/doctest.h>

#include <cstring>
#include <random>
#include <utility>
#include <vector>

#include "lockstep/testing/arena_fixture.hpp"

using lockstep::Arena;
using lockstep::ArenaHeader;
using lockstep::Link;
using lockstep::page_bytes;
using lockstep::TrapError;
using lockstep::TrapKind;
using lockstep::testing::ArenaFixture;

namespace {

/// Writes as a container does: announce, then store.
void store(Arena& arena, Link block, std::uint32_t at, std::uint64_t value) {
  std::byte* const address = arena.at(block) + at;
  arena.before_write(address, sizeof value);
  std::memcpy(address, &value, sizeof value);
}

}  // namespace

TEST_CASE("memory is zeroed, aligned to 16, and starts behind the header") {
  ArenaFixture fixture;
  Arena& arena = fixture.arena();
  CHECK(&Arena::current() == &arena);
  const Link first = arena.allocate(100);
  CHECK(first == Arena::first_block);
  CHECK(arena.image().size() == sizeof(ArenaHeader) + 112);
  store(arena, first, 0, UINT64_MAX);
  arena.free(first, 100);
  const Link again = arena.allocate(97);
  CHECK(again == first);
  for (std::uint32_t i = 0; i < 112; ++i) CHECK(arena.at(again)[i] == std::byte{0});
  CHECK(arena.link_to(arena.at(again)) == again);
}

TEST_CASE("undo restores writes, growth, frees and reuse bit by bit") {
  ArenaFixture fixture;
  Arena& arena = fixture.arena();
  const Link root = arena.allocate(64);
  const Link small = arena.allocate(40);
  const Link large = arena.allocate(100'000);
  const Link gap = arena.allocate(40);
  for (std::uint32_t at = 0; at < 99'000; at += 8) store(arena, large, at, at + 1);
  store(arena, small, 32, 7);
  arena.free(gap, 40);
  fixture.commit();
  const auto before = fixture.copy_image();

  store(arena, root, 8, 1);
  store(arena, small, 0, 2);
  arena.free(small, 40);
  arena.free(large, 100'000);
  CHECK(arena.allocate(33) == small);
  CHECK(arena.allocate(48) == gap);
  store(arena, arena.allocate(5'000), 4'096, 3);
  arena.free(arena.allocate(5'000), 5'000);
  fixture.undo();
  CHECK(fixture.has_image(before));
  CHECK(fixture.is_zero_beyond_image());
}
