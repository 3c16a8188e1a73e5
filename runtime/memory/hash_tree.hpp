// SPDX-License-Identifier: Apache-2.0
#pragma once

/// HashTree: an incremental Merkle tree of fanout 64 over XXH3-128 digests. It serves both levels of the state: pages
/// of an actor (page → chunk of 64 pages → ... → actor), and actors of a shard. The cost of an update follows the
/// leaves that changed, not those that exist, and two trees are told apart by descending where they differ.
///
///     level 0: leaves          count
///     level k: nodes           ceil(count / 64^k), each xxh3_128 of its up to 64 children, seeded with k
///     root: the first level with a single digest; of no leaves at all, the zero digest
///
/// The shape follows from the count of leaves alone. Storage is the owner's, so that millions of small trees can share
/// one region. One thread.

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "base/digest.hpp"
#include "base/state_digest.hpp"

namespace lockstep {

class HashTree {
 public:
  static constexpr std::uint64_t fanout = tree_fanout;

  /// Digests that a tree of up to `leaf_capacity` leaves stores.
  [[nodiscard]] static std::uint64_t storage_digests(std::uint64_t leaf_capacity);
  /// `storage` holds storage_digests(leaf_capacity) and must outlive the tree.
  HashTree(std::span<Digest> storage, std::uint64_t leaf_capacity);

  [[nodiscard]] std::uint64_t leaf_count() const { return leaf_count_; }
  /// New leaves are `fill`; update() accounts for them without being told.
  void resize(std::uint64_t leaf_count, Digest fill);
  void set_leaf(std::uint64_t leaf, Digest digest) { storage_[leaf] = digest; }
  /// Recomputes the nodes above leaves that were set or added since the last update. `changed` has a bit a leaf; only
  /// as many words as the leaves need are read.
  void update(std::span<const std::uint64_t> changed);

  /// As of the last update().
  [[nodiscard]] Digest root() const;
  [[nodiscard]] Digest leaf(std::uint64_t leaf) const { return storage_[leaf]; }
  [[nodiscard]] std::span<const Digest> leaves() const { return storage_.first(leaf_count_); }
  /// The first leaf in which two trees differ, or that only one of them has; nothing when they are equal.
  [[nodiscard]] std::optional<std::uint64_t> first_difference(const HashTree& other) const;

 private:
  /// Digests of one level, as many as the tree has now.
  [[nodiscard]] std::span<Digest> level(unsigned number) const;
  [[nodiscard]] unsigned top_level() const;
  static constexpr unsigned max_levels = 8;
  using Levels = std::array<std::span<Digest>, max_levels>;
  /// Brings node `node` of level `number` up to date, after those below it; true when it had changed.
  bool update_node(const Levels& levels, std::span<const std::uint64_t> changed, unsigned number, std::uint64_t node);

  std::span<Digest> storage_;
  std::uint64_t leaf_capacity_;
  std::uint64_t leaf_count_ = 0;
  std::uint64_t stale_from_ = UINT64_MAX;  // nodes that cover leaves from here on have other children than before
};

}  // namespace lockstep
