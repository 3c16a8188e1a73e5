// SPDX-License-Identifier: Apache-2.0
#include "runtime/memory/hash_tree.hpp"

#include <algorithm>
#include <array>

#include "base/assert.hpp"

namespace lockstep {
namespace {

std::uint64_t parents_of(std::uint64_t count) {
  return (count + HashTree::fanout - 1) / HashTree::fanout;
}

}  // namespace

std::uint64_t HashTree::storage_digests(std::uint64_t leaf_capacity) {
  std::uint64_t total = leaf_capacity;
  for (std::uint64_t count = leaf_capacity; count > 1; total += count) count = parents_of(count);
  return total;
}

HashTree::HashTree(std::span<Digest> storage, std::uint64_t leaf_capacity)
    : storage_(storage), leaf_capacity_(leaf_capacity) {
  LOCKSTEP_ASSERT(storage.size() >= storage_digests(leaf_capacity), "too little storage for a hash tree");
}

void HashTree::resize(std::uint64_t leaf_count, Digest fill) {
  LOCKSTEP_ASSERT(leaf_count <= leaf_capacity_, "a hash tree was given more leaves than it was made for");
  if (leaf_count == leaf_count_) return;
  if (leaf_count > leaf_count_) std::ranges::fill(storage_.subspan(leaf_count_, leaf_count - leaf_count_), fill);
  stale_from_ = std::min({stale_from_, leaf_count, leaf_count_});
  leaf_count_ = leaf_count;
}

std::span<Digest> HashTree::level(unsigned number) const {
  std::uint64_t begin = 0;
  std::uint64_t capacity = leaf_capacity_;
  std::uint64_t count = leaf_count_;
  for (; number > 0; --number) {
    begin += capacity;
    capacity = parents_of(capacity);
    count = parents_of(count);
  }
  return storage_.subspan(begin, count);
}

unsigned HashTree::top_level() const {
  unsigned number = 0;
  for (std::uint64_t count = leaf_count_; count > 1; ++number) count = parents_of(count);
  return number;
}

void HashTree::update(std::span<const std::uint64_t> changed) {
  const unsigned top = top_level();
  Levels levels;
  for (unsigned number = 0; number <= top; ++number) levels[number] = level(number);
  if (top > 0) update_node(levels, changed, top, 0);
  stale_from_ = UINT64_MAX;
}

bool HashTree::update_node(const Levels& levels, std::span<const std::uint64_t> changed, unsigned number,
                           std::uint64_t node) {
  const std::span<Digest> children = levels[number - 1];
  const std::uint64_t first = node * fanout;
  const std::uint64_t count = std::min(fanout, children.size() - first);
  bool stale = (node + 1) << (number * 6) > stale_from_;  // children came or went
  if (number == 1) {
    stale = stale || changed[node] != 0;
  } else {
    for (std::uint64_t child = first; child < first + count; ++child) {
      stale |= update_node(levels, changed, number - 1, child);
    }
  }
  if (stale) levels[number][node] = tree_node(children.subspan(first, count), number);
  return stale;
}

Digest HashTree::root() const {
  return leaf_count_ == 0 ? Digest{} : level(top_level())[0];
}

std::optional<std::uint64_t> HashTree::first_difference(const HashTree& other) const {
  if (leaf_count_ != other.leaf_count_) {
    const std::uint64_t common = std::min(leaf_count_, other.leaf_count_);
    const auto mine = leaves().first(common);
    const auto at = std::ranges::mismatch(mine, other.leaves().first(common)).in1;
    return static_cast<std::uint64_t>(at - mine.begin());
  }
  if (root() == other.root()) return std::nullopt;
  std::uint64_t node = 0;
  for (unsigned number = top_level(); number > 0; --number) {
    const std::span<const Digest> mine = level(number - 1);
    const std::span<const Digest> theirs = other.level(number - 1);
    node *= fanout;
    while (node + 1 < mine.size() && mine[node] == theirs[node]) ++node;
  }
  return node;
}

}  // namespace lockstep
