// SPDX-License-Identifier: Apache-2.0
#include "runtime/memory/hash_tree.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <optional>
#include <random>
#include <span>
#include <vector>

using lockstep::Digest;
using lockstep::HashTree;
using lockstep::xxh3_128;

namespace {

/// The definition, word by word: each level from the one below, until one digest is left.
Digest root_from_scratch(std::vector<Digest> digests) {
  if (digests.empty()) return {};
  for (std::uint64_t level = 1; digests.size() > 1; ++level) {
    std::vector<Digest> parents;
    for (std::size_t first = 0; first < digests.size(); first += 64) {
      const std::size_t count = std::min<std::size_t>(64, digests.size() - first);
      parents.push_back(xxh3_128(std::as_bytes(std::span(digests).subspan(first, count)), level));
    }
    digests = parents;
  }
  return digests[0];
}

struct OwnedTree {
  explicit OwnedTree(std::uint64_t capacity)
      : storage(HashTree::storage_digests(capacity)), tree(storage, capacity), changed((capacity + 63) / 64) {}
  void set(std::uint64_t leaf, std::uint64_t value) {
    tree.set_leaf(leaf, {value, leaf});
    changed[leaf / 64] |= std::uint64_t{1} << (leaf % 64);
  }
  Digest root() {
    tree.update(changed);
    changed.assign(changed.size(), 0);
    return tree.root();
  }
  [[nodiscard]] std::vector<Digest> leaves() const { return {tree.leaves().begin(), tree.leaves().end()}; }

  std::vector<Digest> storage;
  HashTree tree;
  std::vector<std::uint64_t> changed;
};

}  // namespace

TEST_CASE("a tree's storage is its leaves and the nodes above") {
  CHECK(HashTree::storage_digests(0) == 0);
  CHECK(HashTree::storage_digests(1) == 1);
  CHECK(HashTree::storage_digests(2) == 3);
  CHECK(HashTree::storage_digests(64) == 65);
  CHECK(HashTree::storage_digests(65) == 65 + 2 + 1);
  CHECK(HashTree::storage_digests(4097) == 4097 + 65 + 2 + 1);
}

TEST_CASE("an incremental root equals the one from scratch, whatever changed, grew or shrank") {
  std::mt19937_64 random(1);
  constexpr std::uint64_t capacity = 300'000;  // four levels above the leaves
  OwnedTree owned(capacity);
  CHECK(owned.root() == Digest{});
  for (int round = 0; round < 150; ++round) {
    const std::uint64_t magnitude = random() % 18;
    const std::uint64_t count = std::min(capacity, random() % (std::uint64_t{4} << magnitude));
    if (round % 3 == 0) owned.tree.resize(count, {7, 7});
    if (round % 7 == 0) owned.tree.resize(owned.tree.leaf_count() / 64 * 64, {7, 7});
    for (std::uint64_t changes = random() % 20; changes > 0 && owned.tree.leaf_count() > 0; --changes) {
      const std::uint64_t leaf = random() % owned.tree.leaf_count();
      owned.set(leaf, random());
    }
    REQUIRE(owned.root() == root_from_scratch(owned.leaves()));
  }
}

TEST_CASE("the first leaf that differs is found by descending") {
  OwnedTree one(70'000);
  OwnedTree other(70'000);
  one.tree.resize(70'000, {1, 1});
  other.tree.resize(70'000, {1, 1});
  CHECK(one.root() == other.root());
  CHECK(one.tree.first_difference(other.tree) == std::nullopt);
  for (const std::uint64_t leaf : {69'999U, 4'096U, 63U, 0U}) {
    other.set(leaf, 5);
    CHECK(one.root() != other.root());
    CHECK(one.tree.first_difference(other.tree) == leaf);
  }
}

TEST_CASE("of trees with different counts of leaves, the first that differs or is missing is found") {
  OwnedTree one(200);
  OwnedTree other(200);
  one.tree.resize(100, {1, 1});
  other.tree.resize(90, {1, 1});
  CHECK(one.root() != other.root());
  CHECK(one.tree.first_difference(other.tree) == 90);
  other.set(7, 3);
  CHECK(other.root() != Digest{});
  CHECK(one.tree.first_difference(other.tree) == 7);
}

TEST_CASE("a tree whose leaves come one by one has the same root") {
  lockstep::TreeDigest digest;
  std::vector<Digest> leaves;
  for (const unsigned count : {0U, 1U, 2U, 63U, 64U, 65U, 127U, 128U, 129U, 4095U, 4096U, 4097U, 9000U}) {
    while (leaves.size() < count) leaves.push_back({leaves.size(), 7});
    for (const Digest& leaf : leaves) digest.add(leaf);
    CHECK_MESSAGE(digest.finish() == root_from_scratch(leaves), count, " leaves");
  }
}
