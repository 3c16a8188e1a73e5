// SPDX-License-Identifier: Apache-2.0
#include "runtime/memory/tick_arena.hpp"

#include <doctest/doctest.h>

#include <cstring>
#include <span>

using lockstep::TickArena;

TEST_CASE("a tick arena hands out aligned memory, one behind the other, until it is full") {
  alignas(256) std::byte memory[256];
  TickArena arena(memory);
  CHECK(arena.allocate_bytes(3) == memory);
  CHECK(arena.allocate_bytes(16) == memory + 16);
  CHECK(arena.allocate_bytes(1, 64) == memory + 64);
  CHECK(reinterpret_cast<std::byte*>(arena.allocate<std::uint32_t>(2)) == memory + 80);
  CHECK(arena.used_bytes() == 96);
  CHECK(arena.allocate_bytes(161) == nullptr);
  CHECK(arena.allocate_bytes(UINT32_MAX) == nullptr);
  CHECK(arena.allocate<std::uint64_t>(UINT32_MAX) == nullptr);
  CHECK(arena.used_bytes() == 96);
  CHECK(arena.allocate_bytes(1, 256) == nullptr);
  CHECK(arena.allocate_bytes(150, 1) != nullptr);
  CHECK(arena.allocate_bytes(1, 1) == nullptr);
  CHECK(arena.used_bytes() == arena.capacity_bytes());
}

TEST_CASE("a tick arena keeps to the whole multiples of 16 of the memory it is given") {
  alignas(64) std::byte memory[64];
  const std::span<std::byte> all(memory);
  TickArena arena(all.subspan(1, 50));
  CHECK(arena.capacity_bytes() == 32);
  CHECK(arena.allocate_bytes(32) == memory + 16);
  CHECK(arena.allocate_bytes(1) == nullptr);
  CHECK(TickArena(all.subspan(1, 3)).capacity_bytes() == 0);
}

TEST_CASE("a tick arena goes back to a checkpoint or to nothing, and remembers the most it held") {
  alignas(64) std::byte memory[256];
  TickArena arena(memory);
  static_cast<void>(arena.allocate_bytes(32));
  const TickArena::Checkpoint checkpoint = arena.checkpoint();
  static_cast<void>(arena.allocate_bytes(100));
  arena.reset_to_checkpoint(checkpoint);
  CHECK(arena.used_bytes() == 32);
  CHECK(arena.high_water_bytes() == 144);
  CHECK(arena.allocate_bytes(8) == memory + 32);
  arena.purge();
  CHECK(arena.used_bytes() == 0);
  CHECK(arena.high_water_bytes() == 144);
  CHECK(arena.allocate_bytes(1) == memory);
}
