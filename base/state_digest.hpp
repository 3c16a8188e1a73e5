// SPDX-License-Identifier: Apache-2.0
#pragma once

/// The state root's formula, in the one place that both who keeps state and who reads it from a disk use:
///
///     page    XXH3-128 of its bytes below the image's end
///     tree    of leaves: level k has ceil(count / 64^k) nodes, each XXH3-128 of its up to 64 children, seeded with k;
///             the root is the first level with a single digest; of no leaves, the zero digest
///     arena   root of the tree of its pages
///     shard   root of the tree of its arenas
///     state   XXH3-128 of the genesis digest and the shards'
///
/// runtime/memory/hash_tree.hpp keeps such trees up to date; StateDigest computes them once, from pages that come by in
/// order. Pure functions; one thread an object.

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/digest.hpp"

namespace lockstep {

inline constexpr std::uint64_t tree_fanout = 64;
inline constexpr std::size_t state_page_bytes = 4096;

/// A node of level `level` (1 above the leaves) over its children.
[[nodiscard]] inline Digest tree_node(std::span<const Digest> children, unsigned level) {
  return xxh3_128(std::as_bytes(children), level);
}

/// The root over all shards. The effects of all shards are summed up by the same formula without a genesis digest.
[[nodiscard]] Digest state_root(const Digest& genesis, std::span<const Digest> shards);
[[nodiscard]] Digest effects_root(std::span<const Digest> shards);

/// Root of a tree whose leaves come one by one.
class TreeDigest {
 public:
  void add(Digest leaf);
  /// The root over what was added; starts anew.
  [[nodiscard]] Digest finish();

 private:
  struct Level {
    std::array<Digest, tree_fanout> digests;
    std::uint32_t used = 0;
    std::uint64_t total = 0;
  };
  void push(std::size_t level, Digest digest);

  std::vector<Level> levels_;  // as many as the tree has needed so far
};

/// The state root of arenas whose pages come by in order: shard 0's arenas, shard 1's, ...
class StateDigest {
 public:
  /// An arena whose image has `image_bytes`, above 0: its pages follow.
  void begin_arena(std::uint64_t image_bytes) { left_ = image_bytes; }
  /// The next whole pages of the arena; the last one's bytes beyond the image do not count.
  void add_pages(std::span<const std::byte> pages);
  /// After an arena's last page: its digest.
  [[nodiscard]] Digest end_arena();
  void end_shard() { shards_.push_back(arenas_.finish()); }
  [[nodiscard]] std::span<const Digest> shards() const { return shards_; }
  /// Bytes of the arena's image that have not come by.
  [[nodiscard]] std::uint64_t left_bytes() const { return left_; }

 private:
  TreeDigest pages_;
  TreeDigest arenas_;
  std::vector<Digest> shards_;
  std::uint64_t left_ = 0;
};

}  // namespace lockstep
