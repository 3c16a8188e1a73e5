// SPDX-License-Identifier: Apache-2.0
#pragma once

/// MapNode: the blocks of a Map's B+tree. Entries lie in leaves, which are chained; inner nodes hold children and, of
/// each child but the first, a lower bound of its keys (strings: a copy of their own).
///
///     leaf    | count, level 0, prev, next | keys[leaf_capacity]      | values[leaf_capacity] |
///     inner   | count, level,   0,    0    | keys[inner_capacity - 1] | children[inner_capacity] |
///
/// About 512 bytes: a search touches few cache lines, and an insert logs few old bytes for undo. Slots without an entry
/// are zero. Internal to Map.

#include "lockstep/key.hpp"

namespace lockstep::detail {

struct MapNode {
  std::uint32_t count = 0;  ///< entries of a leaf, children of an inner node
  std::uint32_t level = 0;  ///< 0 is a leaf
  Link prev;                ///< leaves only, in key order
  Link next;
};
static_assert(sizeof(MapNode) == 16);

/// How a Map's nodes are laid out, and the moves of entries within and between them. Callers announce nodes first.
template <class K, class V>
struct MapLayout {
  static constexpr std::size_t target_bytes = 512;
  static constexpr std::uint32_t least_entries = 4;

  static consteval std::uint32_t fit(std::size_t bytes, std::size_t entry_bytes) {
    const std::size_t entries = bytes / entry_bytes;
    return entries < least_entries ? least_entries : static_cast<std::uint32_t>(entries);
  }
  static constexpr std::size_t align_up(std::size_t bytes, std::size_t alignment) {
    return (bytes + alignment - 1) / alignment * alignment;
  }

  static constexpr std::uint32_t leaf_capacity = fit(target_bytes - 2 * sizeof(MapNode), sizeof(K) + sizeof(V));
  static constexpr std::uint32_t inner_capacity =
      fit(target_bytes - 2 * sizeof(MapNode) + sizeof(K), sizeof(K) + sizeof(Link));
  static constexpr std::uint32_t leaf_least = std::max(1U, leaf_capacity / 4);
  static constexpr std::uint32_t inner_least = std::max(2U, inner_capacity / 4);

  static constexpr std::size_t keys_at = align_up(sizeof(MapNode), alignof(K));
  static constexpr std::size_t values_at = align_up(keys_at + leaf_capacity * sizeof(K), alignof(V));
  static constexpr std::size_t leaf_bytes = align_up(values_at + leaf_capacity * sizeof(V), 16);
  static constexpr std::size_t children_at = align_up(keys_at + (inner_capacity - 1) * sizeof(K), alignof(Link));
  static constexpr std::size_t inner_bytes = align_up(children_at + inner_capacity * sizeof(Link), 16);

  static K* keys(MapNode* node) { return reinterpret_cast<K*>(reinterpret_cast<std::byte*>(node) + keys_at); }
  static V* values(MapNode* node) { return reinterpret_cast<V*>(reinterpret_cast<std::byte*>(node) + values_at); }
  static Link* children(MapNode* node) {
    return reinterpret_cast<Link*>(reinterpret_cast<std::byte*>(node) + children_at);
  }
  static std::size_t bytes(const MapNode* node) { return node->level == 0 ? leaf_bytes : inner_bytes; }
  static std::uint32_t capacity(const MapNode* node) { return node->level == 0 ? leaf_capacity : inner_capacity; }
  static std::uint32_t least(const MapNode* node) { return node->level == 0 ? leaf_least : inner_least; }
  static void announce_node(MapNode* node) { Arena::current().before_write(node, bytes(node)); }

  /// A new node, announced.
  static Link make(std::uint32_t level) {
    const Link link = allocate_block(level == 0 ? leaf_bytes : inner_bytes);
    auto* const node = block_at<MapNode>(link);
    Arena::current().before_write(node, level == 0 ? leaf_bytes : inner_bytes);
    node->level = level;
    return link;
  }

  /// How many of `count` sorted keys are less than `key` (or, with `or_equal`, not greater). The loop has no branch
  /// that depends on keys.
  template <bool or_equal>
  static std::uint32_t rank(const K* first, std::uint32_t count, KeyArg<K> key) {
    using Traits = KeyTraits<K>;
    const auto before = [key](const K& at) {
      if constexpr (or_equal) {
        return !Traits::less(key, Traits::view(at));
      } else {
        return Traits::less(Traits::view(at), key);
      }
    };
    // What is left at the end is compared as a whole, and before that the last key of each window: no comparison waits
    // for another. A key that is compared by a call is not worth it.
    constexpr bool is_cheap = std::is_integral_v<K> || std::is_enum_v<K>;
    constexpr std::uint32_t window = is_cheap ? 8 : 1;
    constexpr std::uint32_t most_windows = is_cheap ? 8 : 1;
    std::uint32_t at = 0;
    std::uint32_t left = count;
    while (left > window * most_windows) {
      const std::uint32_t half = left / 2;
      at += half * static_cast<std::uint32_t>(before(first[at + half - 1]));  // a product: "?:" became a branch
      left -= half;
    }
    std::uint32_t passed = 0;
    for (std::uint32_t end = window; end < left; end += window)
      passed += static_cast<std::uint32_t>(before(first[at + end - 1]));
    at += passed * window;
    if (count < window) {
      for (std::uint32_t i = 0; i < count; ++i) at += static_cast<std::uint32_t>(before(first[i]));
      return at;
    }
    at = std::min(at, count - window);  // a whole window: what precedes the place found is less and counts
    return at + count_before(first + at, before, std::make_integer_sequence<std::uint32_t, window>());
  }

  /// Shifts what lies at `index` and behind by one place, and leaves that place zero.
  template <class T>
  static void open_gap(T* first, std::uint32_t count, std::uint32_t index) {
    relocate(first + index + 1, first + index, count - index);
    zero(first + index, 1);
  }
  template <class T>
  static void close_gap(T* first, std::uint32_t count, std::uint32_t index) {
    relocate(first + index, first + index + 1, count - index - 1);
    zero(first + count - 1, 1);
  }
  /// Moves elements to zeroed places that do not overlap.
  template <class T>
  static void move_out(T* to, T* from, std::uint32_t count) {
    relocate(to, from, count);
    zero(from, count);
  }

  /// Moves a leaf's entries from `first` on to `right`, which is new.
  static void split_leaf(MapNode* left, MapNode* right, std::uint32_t first) {
    const std::uint32_t moved = left->count - first;
    move_out(keys(right), keys(left) + first, moved);
    move_out(values(right), values(left) + first, moved);
    left->count = first;
    right->count = moved;
  }
  /// Moves an inner node's children from `first` on to `right`, which is new, and the key between to `separator`.
  static void split_inner(MapNode* left, MapNode* right, std::uint32_t first, K* separator) {
    const std::uint32_t moved = left->count - first;
    move_out(separator, keys(left) + first - 1, 1);
    move_out(keys(right), keys(left) + first, moved - 1);
    move_out(children(right), children(left) + first, moved);
    left->count = first;
    right->count = moved;
  }

  /// Appends all of `right` to `left`; the separator (inner nodes: used up) lay between them.
  static void merge(MapNode* left, MapNode* right, K* separator) {
    if (left->level == 0) {
      move_out(keys(left) + left->count, keys(right), right->count);
      move_out(values(left) + left->count, values(right), right->count);
    } else {
      move_out(keys(left) + left->count - 1, separator, 1);
      move_out(keys(left) + left->count, keys(right), right->count - 1);
      move_out(children(left) + left->count, children(right), right->count);
    }
    left->count += right->count;
    right->count = 0;
  }

  /// Moves the first `moved` of `right` to the end of `left`. Inner nodes: rotates through the separator.
  static void move_left(MapNode* left, MapNode* right, std::uint32_t moved, K* separator) {
    const std::uint32_t rest = right->count - moved;
    if (left->level == 0) {
      shift_left(keys(left) + left->count, keys(right), moved, rest);
      shift_left(values(left) + left->count, values(right), moved, rest);
    } else {
      relocate(keys(left) + left->count - 1, separator, 1);
      relocate(keys(left) + left->count, keys(right), moved - 1);
      relocate(separator, keys(right) + moved - 1, 1);
      relocate(keys(right), keys(right) + moved, rest - 1);
      zero(keys(right) + rest - 1, moved);
      shift_left(children(left) + left->count, children(right), moved, rest);
    }
    left->count += moved;
    right->count = rest;
  }

  /// Moves the last `moved` of `left` to the front of `right`. Inner nodes: rotates through the separator.
  static void move_right(MapNode* left, MapNode* right, std::uint32_t moved, K* separator) {
    const std::uint32_t rest = left->count - moved;
    if (left->level == 0) {
      shift_right(keys(right), right->count, keys(left) + rest, moved);
      shift_right(values(right), right->count, values(left) + rest, moved);
    } else {
      relocate(keys(right) + moved, keys(right), right->count - 1);
      relocate(keys(right) + moved - 1, separator, 1);
      relocate(separator, keys(left) + rest - 1, 1);
      relocate(keys(right), keys(left) + rest, moved - 1);
      zero(keys(left) + rest - 1, moved);
      shift_right(children(right), right->count, children(left) + rest, moved);
    }
    left->count = rest;
    right->count += moved;
  }

 private:
  template <class Before, std::uint32_t... is>
  static std::uint32_t count_before(const K* first, const Before& before, std::integer_sequence<std::uint32_t, is...>) {
    return (static_cast<std::uint32_t>(before(first[is])) + ...);
  }
  template <class T>
  static void shift_left(T* to, T* from, std::uint32_t moved, std::uint32_t rest) {
    relocate(to, from, moved);
    relocate(from, from + moved, rest);
    zero(from + rest, moved);
  }
  template <class T>
  static void shift_right(T* to, std::uint32_t to_count, T* from, std::uint32_t moved) {
    relocate(to + moved, to, to_count);
    move_out(to, from, moved);
  }
};

}  // namespace lockstep::detail
