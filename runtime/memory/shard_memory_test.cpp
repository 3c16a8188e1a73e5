// SPDX-License-Identifier: Apache-2.0
#include "runtime/memory/shard_memory.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cstring>
#include <random>
#include <vector>

using lockstep::Arena;
using lockstep::Digest;
using lockstep::HashTree;
using lockstep::Link;
using lockstep::page_bytes;
using lockstep::ShardMemory;
using lockstep::TrapError;
using lockstep::WriteBarrier;
using lockstep::xxh3_128;

namespace {

constexpr std::uint64_t small_shard_bytes = std::uint64_t{64} << 20;
constexpr std::uint64_t arena_bytes = 600 * page_bytes;

/// A shard's memory with a barrier of its own.
struct Bench {
  explicit Bench(std::uint64_t image_bytes = small_shard_bytes, std::uint32_t colour = 0)
      : log(1 << 16), barrier(log), memory(std::move(*ShardMemory::make(image_bytes, barrier, colour))) {}

  Arena& create(std::uint64_t capacity = arena_bytes) {
    const auto index = memory->create_arena(capacity);
    REQUIRE(index.has_value());
    return memory->arena(*index);
  }

  std::vector<std::byte> log;
  WriteBarrier barrier;
  std::unique_ptr<ShardMemory> memory;
};

void store(Arena& arena, Link block, std::uint32_t at, std::uint64_t value) {
  arena.before_write(arena.at(block) + at, sizeof value);
  std::memcpy(arena.at(block) + at, &value, sizeof value);
}

/// The digest by its definition: every page of every arena, nothing remembered.
Digest digest_from_scratch(ShardMemory& memory) {
  const auto root_of = [](const std::vector<Digest>& leaves) {
    std::vector<Digest> storage(HashTree::storage_digests(leaves.size()));
    HashTree tree(storage, leaves.size());
    tree.resize(leaves.size(), {});
    for (std::size_t leaf = 0; leaf < leaves.size(); ++leaf) tree.set_leaf(leaf, leaves[leaf]);
    tree.update(std::vector<std::uint64_t>((leaves.size() + 63) / 64, UINT64_MAX));
    return tree.root();
  };
  std::vector<Digest> arenas;
  for (std::uint32_t index = 0; index < memory.arena_count(); ++index) {
    std::vector<Digest> pages;
    const auto image = memory.arena(index).image();
    for (std::size_t begin = 0; begin < image.size(); begin += page_bytes) {
      pages.push_back(xxh3_128(image.subspan(begin, std::min(page_bytes, image.size() - begin))));
    }
    arenas.push_back(root_of(pages));
  }
  return root_of(arenas);
}

struct Block {
  std::uint32_t arena;
  Link link;
  std::uint32_t bytes;
};

/// One random step: creates, writes, allocates and frees; committed, or undone with all that it created.
void random_step(Bench& bench, std::mt19937_64& random, std::vector<Block>& blocks) {
  ShardMemory& memory = *bench.memory;
  const std::vector<Block> before = blocks;
  const bool creates = memory.arena_count() == 0 || random() % 50 == 0;
  if (creates) bench.create(random() % 2 == 0 ? page_bytes : arena_bytes);
  const auto index = creates ? memory.arena_count() - 1 : static_cast<std::uint32_t>(random() % memory.arena_count());
  Arena& arena = memory.arena(index);
  bool trapped = random() % 4 == 0;
  try {
    for (std::uint64_t left = random() % 10; left > 0; --left) {
      const std::uint64_t what = random() % 4;
      const auto mine = std::ranges::find(blocks, index, &Block::arena);
      if (what == 0 || mine == blocks.end()) {
        const auto bytes = static_cast<std::uint32_t>(random() % 20'000 + 8);
        blocks.push_back({index, arena.allocate(bytes), bytes});
      } else if (what == 1) {
        arena.free(mine->link, mine->bytes);
        blocks.erase(mine);
      } else {
        const auto at = static_cast<std::uint32_t>(random() % (mine->bytes - 7));
        store(arena, mine->link, at, random());
      }
    }
  } catch (const TrapError&) {
    trapped = true;
  }
  if (!trapped) return bench.barrier.commit();
  bench.barrier.undo();
  if (creates) memory.undo_create();
  blocks = before;
}

}  // namespace

TEST_CASE("where a shard's memory starts within a page shows in no digest") {
  std::vector<Digest> digests;
  for (const std::uint32_t colour : {0U, 1U, 63U, 64U, 4095U}) {
    Bench coloured(arena_bytes, colour);
    Arena& arena = coloured.create();
    CHECK(reinterpret_cast<std::uintptr_t>(arena.at(Link{})) % page_bytes == colour % 64 * 64);
    const Link block = arena.allocate(3 * page_bytes);
    for (std::uint32_t at = 0; at < 3 * page_bytes; at += 1000) store(arena, block, at, at);
    coloured.barrier.commit();
    digests.push_back(coloured.memory->digest());
    CHECK(digests.back() == digests.front());
    CHECK(digests.back() == digest_from_scratch(*coloured.memory));
    CHECK_FALSE(coloured.memory->create_arena(page_bytes).has_value());
  }
}

TEST_CASE("the digest of changed pages equals the one from scratch, and is the same in two processes' memory") {
  for (std::uint64_t seed = 1; seed <= 3; ++seed) {
    Bench one;
    Bench other;
    std::mt19937_64 random(seed);
    std::mt19937_64 same_random(seed);
    std::vector<Block> blocks;
    std::vector<Block> other_blocks;
    for (int checkpoint = 0; checkpoint < 40; ++checkpoint) {
      for (int step = 0; step < 20; ++step) {
        random_step(one, random, blocks);
        random_step(other, same_random, other_blocks);
      }
      // One takes a digest at every checkpoint, the other only at the last: it must not matter.
      REQUIRE(one.memory->digest() == digest_from_scratch(*one.memory));
    }
    CHECK(one.memory->arena_count() > 5);
    CHECK(other.memory->digest() == one.memory->digest());
  }
}

TEST_CASE("pages that were written and freed hash as pages never touched") {
  Bench bench;
  Arena& arena = bench.create();
  const Link block = arena.allocate(100 * page_bytes);
  bench.barrier.commit();
  arena.free(block, 100 * page_bytes);
  bench.barrier.commit();
  const Digest untouched = bench.memory->digest();
  CHECK(arena.allocate(100 * page_bytes) == block);
  for (std::uint32_t at = 0; at < 100 * page_bytes; at += 512) store(arena, block, at, 1 + at);
  bench.barrier.commit();
  CHECK(bench.memory->digest() != untouched);
  arena.free(block, 100 * page_bytes);
  bench.barrier.commit();
  CHECK(bench.memory->digest() == untouched);
  CHECK(bench.memory->page_tree(0).leaf(50) == bench.memory->page_tree(0).leaf(51));
}

TEST_CASE("an undone creation leaves no trace in memory, digest or what comes next") {
  Bench bench;
  Bench never;
  for (Bench* each : {&bench, &never}) {
    static_cast<void>(each->create().allocate(100));
    each->barrier.commit();
  }
  CHECK(bench.memory->digest() == never.memory->digest());
  Arena& doomed = bench.create();
  const std::byte* const memory = doomed.at(Link{});
  store(doomed, doomed.allocate(40'000), 30'000, 7);
  bench.barrier.undo();
  bench.memory->undo_create();
  CHECK(bench.memory->arena_count() == 1);
  CHECK(bench.memory->declared_bytes() == arena_bytes);
  CHECK(std::all_of(memory, memory + arena_bytes, [](std::byte byte) { return byte == std::byte{0}; }));
  CHECK(bench.memory->digest() == never.memory->digest());
  for (Bench* each : {&bench, &never}) {
    static_cast<void>(each->create(2 * arena_bytes).allocate(8));
    each->barrier.commit();
  }
  CHECK(bench.memory->digest() == never.memory->digest());
}

TEST_CASE("a difference is found down to the actor and the page") {
  Bench one;
  Bench other;
  for (Bench* bench : {&one, &other}) {
    for (int i = 0; i < 100; ++i) static_cast<void>(bench->create(100 * page_bytes).allocate(90 * page_bytes));
    bench->barrier.commit();
  }
  store(other.memory->arena(77), Arena::first_block, 50 * page_bytes, 1);
  other.barrier.commit();
  CHECK(one.memory->digest() != other.memory->digest());
  const auto arena = one.memory->arena_tree().first_difference(other.memory->arena_tree());
  REQUIRE(arena == 77);
  CHECK(one.memory->page_tree(77).first_difference(other.memory->page_tree(77)) == 50);
}

ShardMemory::Fill copy_of(std::span<const std::byte> image) {
  return [image](std::span<std::byte> into) -> lockstep::Result<void> {
    std::ranges::copy(image, into.begin());
    return {};
  };
}

TEST_CASE("restored images give the digest of those they were copied from") {
  Bench bench;
  std::mt19937_64 random(9);
  std::vector<Block> blocks;
  for (int step = 0; step < 300; ++step) random_step(bench, random, blocks);
  Bench restored;
  for (std::uint32_t index = 0; index < bench.memory->arena_count(); ++index) {
    Arena& arena = bench.memory->arena(index);
    REQUIRE(restored.memory->restore_arena(arena.capacity_bytes(), arena.image().size(), copy_of(arena.image())) ==
            index);
  }
  CHECK(restored.memory->digest() == bench.memory->digest());
  for (int step = 0; step < 100; ++step) {
    std::mt19937_64 same_random = random;
    std::vector<Block> same_blocks = blocks;
    random_step(bench, random, blocks);
    random_step(restored, same_random, same_blocks);
  }
  CHECK(restored.memory->digest() == bench.memory->digest());
}

TEST_CASE("an image that is none, or of another capacity, is refused") {
  Bench bench;
  const Arena& arena = bench.create();
  std::vector<std::byte> image(arena.image().begin(), arena.image().end());
  CHECK(bench.memory->restore_arena(2 * arena_bytes, image.size(), copy_of(image)).error().code ==
        lockstep::ErrorCode::corrupt);
  image.pop_back();
  CHECK(bench.memory->restore_arena(arena_bytes, image.size(), copy_of(image)).error().code ==
        lockstep::ErrorCode::corrupt);
  CHECK(bench.memory->arena_count() == 1);
}

TEST_CASE("an arena whose image is replaced is that of the image") {
  Bench bench;
  Arena& arena = bench.create();
  static_cast<void>(arena.allocate(5000));
  bench.barrier.commit();
  Bench other;
  static_cast<void>(other.create().allocate(64));
  other.barrier.commit();
  static_cast<void>(other.memory->digest());
  REQUIRE(other.memory->replace_image(0, arena.image().size(), copy_of(arena.image())));
  CHECK(other.memory->digest() == bench.memory->digest());
}

/// Remembers what it is told of.
struct Seen final : lockstep::PageObserver {
  void before_change(const std::byte* image, const std::byte* page) override {
    pages.push_back(static_cast<std::uint64_t>(page - image) / page_bytes);
  }
  std::vector<std::uint64_t> pages;
};

TEST_CASE("an observer is told of a page once, before it changes, and again when marks were cleared") {
  Bench bench;
  Arena& arena = bench.create();
  const lockstep::Link link = arena.allocate(3 * page_bytes);
  bench.barrier.commit();
  static_cast<void>(bench.memory->digest());
  Seen seen;
  bench.barrier.set_observer(&seen);
  store(arena, link, page_bytes, 7);
  store(arena, link, page_bytes + 8, 7);
  bench.barrier.commit();
  store(arena, link, page_bytes, 8);
  bench.barrier.undo();
  CHECK(seen.pages == std::vector<std::uint64_t>{1});
  static_cast<void>(bench.memory->digest());
  store(arena, link, page_bytes, 9);
  bench.barrier.commit();
  bench.barrier.set_observer(nullptr);
  store(arena, link, 2 * page_bytes, 9);
  CHECK(seen.pages == std::vector<std::uint64_t>{1, 1});
}

TEST_CASE("arenas beyond what the shard has room for are refused with the remedy") {
  Bench bench(4 * page_bytes);
  static_cast<void>(bench.create(3 * page_bytes));
  const auto too_much = bench.memory->create_arena(2 * page_bytes);
  REQUIRE_FALSE(too_much.has_value());
  CHECK(too_much.error().code == lockstep::ErrorCode::full);
  CHECK(bench.memory->create_arena(page_bytes) == 1);
}

TEST_CASE("a shard of many arenas of one page fits its tables") {
  Bench bench(2'000 * page_bytes);
  for (int i = 0; i < 2'000; ++i) {
    static_cast<void>(bench.create(page_bytes).allocate(64));
    bench.barrier.commit();
  }
  CHECK(bench.memory->digest() == digest_from_scratch(*bench.memory));
}
