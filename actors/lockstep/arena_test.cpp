// SPDX-License-Identifier: Apache-2.0
#include "lockstep/arena.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <random>
#include <span>
#include <utility>
#include <vector>

#include "base/digest.hpp"
#include "lockstep/testing/arena_fixture.hpp"

using lockstep::Arena;
using lockstep::ArenaHeader;
using lockstep::FinalStep;
using lockstep::Link;
using lockstep::page_bytes;
using lockstep::TrapError;
using lockstep::TrapKind;
using lockstep::WriteBarrier;
using lockstep::testing::ArenaFixture;

namespace {

/// Writes as a container does: announce, then store.
void store(Arena& arena, Link block, std::uint32_t at, std::uint64_t value) {
  std::byte* const address = arena.at(block) + at;
  arena.before_write(address, sizeof value);
  std::memcpy(address, &value, sizeof value);
}

/// A random history of what containers do: blocks of many sizes come, change and go. Two of the same seed make the same
/// moves, whatever their arenas' addresses are.
class History {
 public:
  History(ArenaFixture& fixture, std::uint64_t seed) : fixture_(&fixture), random_(seed) {}

  /// One handler of up to 40 operations; false when it trapped. Like the executor, undoes those that trap, and some
  /// others.
  bool step() {
    fixture_->use();
    const std::vector<Block> before = blocks_;
    bool trapped = false;
    try {
      operate_many();
    } catch (const TrapError& trap) {
      trapped = true;
      CHECK(trap.kind == fixture_->barrier().raised());
    }
    trapped = trapped || fixture_->barrier().raised() != TrapKind::none;
    if (trapped || random_() % 4 == 0) {
      fixture_->undo();
      blocks_ = before;
    } else {
      fixture_->commit();
    }
    return !trapped;
  }

  void operate_many() {
    for (std::uint64_t left = random_() % 40; left > 0; --left) operate();
  }
  void reseed(std::uint64_t seed) { random_.seed(seed); }
  void move_to(ArenaFixture& fixture) { fixture_ = &fixture; }

 private:
  struct Block {
    Link link;
    std::uint32_t bytes;
  };

  void operate() {
    Arena& arena = Arena::current();
    const std::uint64_t what = random_() % 8;
    if (blocks_.empty() || what < 3) {
      const std::uint64_t magnitude = random_() % 15 + 1;
      const auto bytes = static_cast<std::uint32_t>(random_() % (std::uint64_t{1} << magnitude));
      blocks_.push_back({arena.allocate(bytes), bytes});
      return;
    }
    Block& block = blocks_[random_() % blocks_.size()];
    if (what < 5) {
      const Block gone = std::exchange(block, blocks_.back());
      blocks_.pop_back();
      arena.free(gone.link, gone.bytes);
      return;
    }
    if (block.bytes == 0) return;
    const std::uint64_t at = random_() % block.bytes;
    const std::uint64_t length = random_() % std::min<std::uint64_t>(block.bytes - at, what == 7 ? 10'000 : 16) + 1;
    arena.before_write(arena.at(block.link) + at, length);
    std::memset(arena.at(block.link) + at, static_cast<int>(random_() & 255), length);
  }

  ArenaFixture* fixture_;
  std::mt19937_64 random_;
  std::vector<Block> blocks_;
};

bool equal(std::span<const std::byte> one, std::span<const std::byte> other) {
  return one.size() == other.size() && std::memcmp(one.data(), other.data(), one.size()) == 0;
}

/// What of a page lies below the image's end.
std::span<const std::byte> page_of(std::span<const std::byte> image, std::uint64_t page) {
  const std::size_t from = std::min<std::size_t>(page * page_bytes, image.size());
  return image.subspan(from, std::min<std::size_t>(page_bytes, image.size() - from));
}

constexpr std::array<std::byte, page_bytes> zero_page{};
constexpr std::uint64_t history_capacity = 96 * page_bytes;  // little enough to be used up now and then
constexpr std::size_t history_budget = 24'000;

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

TEST_CASE("equal histories give equal bytes and equal traps at any two addresses") {
  for (std::uint64_t seed = 1; seed <= 8; ++seed) {
    ArenaFixture one(history_capacity, history_budget);
    ArenaFixture other(history_capacity, history_budget);
    History first(one, seed);
    History second(other, seed);
    int traps = 0;
    for (int step = 0; step < 300; ++step) {
      const bool went_well = first.step();
      REQUIRE(went_well == second.step());
      traps += went_well ? 0 : 1;
    }
    CHECK(traps > 0);
    CHECK(one.has_image(other.copy_image()));
  }
}

TEST_CASE("undo at any point leaves the image and all beyond it as before the step") {
  for (std::uint64_t seed = 100; seed < 104; ++seed) {
    ArenaFixture fixture(history_capacity, history_budget);
    History history(fixture, seed);
    for (int step = 0; step < 200; ++step) {
      history.step();
      const auto before = fixture.copy_image();
      History doomed = history;
      for (int more = 0; more < 3; ++more) {
        // Steps that are never committed: undo comes after all of the handler's operations, or where it trapped.
        try {
          doomed.operate_many();
        } catch (const TrapError&) {
        }
        fixture.undo();
        REQUIRE(fixture.has_image(before));
        doomed = history;
        doomed.reseed(seed * 1000 + static_cast<std::uint64_t>(step * 10 + more));
      }
    }
    CHECK(fixture.is_zero_beyond_image());
  }
}

TEST_CASE("every page that a step changed is marked, and its arena too") {
  for (std::uint64_t seed = 200; seed < 204; ++seed) {
    ArenaFixture fixture(history_capacity, history_budget);
    History history(fixture, seed);
    for (int step = 0; step < 200; ++step) {
      const auto before = fixture.copy_image();
      fixture.clear_marks();
      history.step();
      const auto after = fixture.copy_image();
      for (std::uint64_t page = 0; page * page_bytes < after.size(); ++page) {
        const auto was = page_of(before, page);
        const auto is = page_of(after, page);
        const bool reserved_only = was.empty() && is.size() == page_bytes && equal(is, zero_page);
        if (!equal(was, is) && !reserved_only) REQUIRE(fixture.is_marked(page));
      }
      if (!equal(before, after)) REQUIRE(fixture.is_arena_marked());
    }
  }
}

TEST_CASE("an image goes on at another address after a plain copy") {
  ArenaFixture one(history_capacity, history_budget);
  ArenaFixture other(history_capacity, history_budget);
  History first(one, 7);
  History second(other, 7);
  for (int step = 0; step < 100; ++step) first.step(), second.step();
  ArenaFixture moved(one.copy_image(), history_capacity, history_budget);
  CHECK(moved.is_marked(0));
  first.move_to(moved);
  for (int step = 0; step < 100; ++step) CHECK(first.step() == second.step());
  CHECK(moved.has_image(other.copy_image()));
}

TEST_CASE("freed blocks are reused by class, large ones from the next step on") {
  ArenaFixture fixture;
  Arena& arena = fixture.arena();
  const Link large = arena.allocate(50'000);
  const Link small = arena.allocate(4'096);
  fixture.commit();
  const std::size_t high_water = arena.image().size();
  arena.free(large, 50'000);
  arena.free(small, 4'096);
  CHECK(arena.allocate(4'000) == small);
  CHECK(arena.header().blocks == 2);
  fixture.commit();
  CHECK(arena.header().blocks == 1);
  CHECK(arena.allocate(49'500) == large);
  CHECK(arena.image().size() == high_water);
  const Link fresh = arena.allocate(50'000);
  arena.free(fresh, 50'000);
  CHECK(arena.allocate(50'000) == fresh);
}

TEST_CASE("an arena is exhausted at its declared capacity, to the byte") {
  ArenaFixture fixture(page_bytes);
  Arena& arena = fixture.arena();
  CHECK(arena.allocate(3'584) == Arena::first_block);
  CHECK(arena.image().size() == page_bytes);
  CHECK_THROWS_AS(static_cast<void>(arena.allocate(1)), TrapError);
  CHECK(fixture.barrier().raised() == TrapKind::arena_exhausted);
  fixture.undo();
  CHECK(arena.image().size() == sizeof(ArenaHeader));
  CHECK_THROWS_AS(static_cast<void>(arena.allocate(UINT32_MAX)), TrapError);
}

TEST_CASE("a handler may overwrite as much as the write budget holds, and a free beyond it traps without throwing") {
  ArenaFixture fixture(history_capacity, 8'192);
  Arena& arena = fixture.arena();
  const Link block = arena.allocate(100'000);
  const Link small = arena.allocate(4'000);
  fixture.commit();
  const auto before = fixture.copy_image();
  arena.before_write(arena.at(block), 8'112);  // 64 to join, 16 for the entry itself
  CHECK(fixture.barrier().used_bytes() == 8'192);
  std::memset(arena.at(block), 1, 8'112);
  CHECK_THROWS_AS(arena.before_write(arena.at(block) + 9'000, 1), TrapError);
  arena.free(small, 4'000);
  CHECK(fixture.barrier().raised() == TrapKind::write_budget);
  fixture.undo();
  CHECK(fixture.has_image(before));
  arena.before_write(arena.at(block), 5'000);
  arena.free(small, 4'000);
  CHECK(fixture.barrier().raised() == TrapKind::write_budget);
  fixture.undo();
  CHECK(fixture.has_image(before));
}

TEST_CASE("the same range costs budget once, as does the root object of a step") {
  ArenaFixture fixture;
  Arena& arena = fixture.arena();
  const Link root = arena.allocate(64);
  const Link other = arena.allocate(64);
  fixture.commit();
  arena.before_write(arena.at(root), 64);
  store(arena, other, 0, 1);
  const std::size_t used = fixture.barrier().used_bytes();
  for (std::uint32_t i = 0; i < 100; ++i) store(arena, other, 8, i), store(arena, root, i % 8 * 8, i);
  CHECK(fixture.barrier().used_bytes() == used);
}

TEST_CASE("memory younger than the step costs no budget") {
  ArenaFixture fixture;
  Arena& arena = fixture.arena();
  const Link block = arena.allocate(100'000);
  const std::size_t used = fixture.barrier().used_bytes();
  for (std::uint32_t at = 0; at < 99'000; at += 8) store(arena, block, at, 1);
  CHECK(fixture.barrier().used_bytes() == used);
}

TEST_CASE("a final step leaves and marks what a step would have, and no budget bounds it") {
  constexpr std::uint32_t large_bytes = 3 * page_bytes;
  ArenaFixture fixture;
  ArenaFixture final_fixture(ArenaFixture::default_capacity_bytes, WriteBarrier::min_log_bytes);
  std::array<Link, 3> blocks;
  const auto begin = [&](ArenaFixture& into) {
    blocks = {into.arena().allocate(64), into.arena().allocate(large_bytes), into.arena().allocate(128)};
    into.commit();
    into.clear_marks();
  };
  const auto change = [&](Arena& arena) {
    for (std::uint32_t at = 0; at < large_bytes; at += 16) store(arena, blocks[1], at, at + 1);
    arena.free(blocks[0], 64);
    const Link again = arena.allocate(50);
    CHECK(again == blocks[0]);
    store(arena, again, 8, 7);
    store(arena, arena.allocate(5000), 0, 9);
    arena.free(blocks[1], large_bytes);
  };
  begin(fixture);
  change(fixture.arena());
  fixture.commit();
  begin(final_fixture);
  {
    const FinalStep step(final_fixture.arena());
    change(final_fixture.arena());
    CHECK(final_fixture.barrier().used_bytes() == 0);
  }
  const std::vector<std::byte> image = fixture.copy_image();
  CHECK(final_fixture.has_image(image));
  CHECK(final_fixture.is_arena_marked());
  for (std::uint64_t page = 0; page * page_bytes < image.size(); ++page) {
    CAPTURE(page);
    CHECK(final_fixture.is_marked(page) == fixture.is_marked(page));
  }
  store(final_fixture.arena(), blocks[2], 0, 1);
  CHECK(final_fixture.barrier().used_bytes() != 0);  // the next step is one like any other
  final_fixture.undo();
  CHECK(final_fixture.has_image(image));
}

TEST_CASE("a write outside the image does nothing, before and after the arena joined the step") {
  ArenaFixture fixture;
  std::uint64_t elsewhere = 0;
  fixture.arena().before_write(&elsewhere, sizeof elsewhere);
  CHECK(fixture.barrier().used_bytes() == 0);
  static_cast<void>(fixture.arena().allocate(8));
  const std::size_t used = fixture.barrier().used_bytes();
  fixture.arena().before_write(&elsewhere, sizeof elsewhere);
  CHECK(fixture.barrier().used_bytes() == used);
  CHECK_FALSE(fixture.arena().contains(&elsewhere));
}

TEST_CASE("a barrier undoes several arenas that took turns in one step") {
  ArenaFixture fixture;
  ArenaFixture second;
  std::vector<std::uint64_t> marks(4);
  std::uint64_t mark = 0;
  Arena guest(second.arena().at({}), ArenaFixture::default_capacity_bytes, fixture.barrier(), {marks.data(), &mark, 1});
  Arena& host = fixture.arena();
  const Link in_host = host.allocate(32);
  const Link in_guest = guest.allocate(32);
  fixture.commit();
  const auto host_before = fixture.copy_image();
  const std::vector<std::byte> guest_before(guest.image().begin(), guest.image().end());
  for (std::uint64_t turn = 1; turn < 5; ++turn) {
    store(host, in_host, 8, turn);
    store(guest, in_guest, 16, turn);
    store(host, host.allocate(64), 0, turn);
    store(guest, guest.allocate(64), 0, turn);
    guest.free(guest.allocate(8), 8);
  }
  fixture.undo();
  CHECK(fixture.has_image(host_before));
  CHECK(equal(guest.image(), guest_before));
  store(host, in_host, 0, 1);
  store(guest, in_guest, 0, 1);
  fixture.commit();
  CHECK(*reinterpret_cast<const std::uint64_t*>(guest.at(in_guest)) == 1);
}

TEST_CASE("bytes that are no image of this capacity are told apart") {
  ArenaFixture fixture;
  static_cast<void>(fixture.arena().allocate(100));
  auto image = fixture.copy_image();
  CHECK(Arena::is_image(image, ArenaFixture::default_capacity_bytes));
  CHECK_FALSE(Arena::is_image(image, 2 * ArenaFixture::default_capacity_bytes));
  CHECK_FALSE(Arena::is_image(std::span(image).first(500), ArenaFixture::default_capacity_bytes));
  image.resize(image.size() + 16);
  CHECK_FALSE(Arena::is_image(image, ArenaFixture::default_capacity_bytes));
}

TEST_CASE("a fixed history gives the bytes it always gave, with every compiler") {
  ArenaFixture fixture(history_capacity, history_budget);
  History history(fixture, 42);
  for (int step = 0; step < 300; ++step) history.step();
  // Whoever changes this changes the state hashes of every journal: raise ArenaHeader::current_layout.
  CHECK(lockstep::xxh3_128(fixture.arena().image()).hex() == "ab465ea05177ce0862bb619a078a5f57");
}
