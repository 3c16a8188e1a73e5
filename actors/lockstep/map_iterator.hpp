// SPDX-License-Identifier: Apache-2.0
#pragma once

/// MapIterator: walks a Map's entries in key order, both ways. It gives out a MapEntry that takes part in structured
/// bindings; on a map that is not const, the first access to an entry of a leaf announces a write of the leaf's values.
/// Any insert or erase invalidates it.

#include <iterator>

#include "lockstep/map_node.hpp"

namespace lockstep {

/// An entry as seen from outside: `auto& [key, value] : map`, or it->key(), it->value(). `V` is const on a const map.
template <class K, class V>
class MapEntry {
 public:
  MapEntry() = default;
  MapEntry(const K* key, V* value) : key_(key), value_(value) {}
  [[nodiscard]] const K& key() const { return *key_; }
  [[nodiscard]] V& value() const { return *value_; }

  template <std::size_t I>
  [[nodiscard]] auto& get() const {
    if constexpr (I == 0) {
      return *key_;
    } else {
      return *value_;
    }
  }

 private:
  const K* key_ = nullptr;
  V* value_ = nullptr;
};

/// `V` is const for a const map.
template <class K, class V>
class MapIterator {
  using Layout = detail::MapLayout<K, std::remove_const_t<V>>;

 public:
  using iterator_category = std::input_iterator_tag;
  using value_type = MapEntry<K, V>;
  using difference_type = std::ptrdiff_t;
  using reference = MapEntry<K, V>&;
  using pointer = MapEntry<K, V>*;

  MapIterator() = default;
  MapIterator(detail::MapNode* leaf, std::uint32_t index) : leaf_(leaf), index_(index) { normalise(); }

  reference operator*() const {
    if constexpr (!std::is_const_v<V>) {
      if (announced_ != leaf_) {
        detail::announce(Layout::values(leaf_), leaf_->count);
        announced_ = leaf_;
      }
    }
    entry_ = {Layout::keys(leaf_) + index_, Layout::values(leaf_) + index_};
    return entry_;
  }
  pointer operator->() const { return &**this; }

  MapIterator& operator++() {
    ++index_;
    normalise();
    return *this;
  }
  MapIterator operator++(int) {
    MapIterator before = *this;
    ++*this;
    return before;
  }
  MapIterator& operator--() {
    if (index_ == 0) {
      leaf_ = detail::block_at<detail::MapNode>(leaf_->prev);
      index_ = leaf_->count;
    }
    --index_;
    return *this;
  }

  friend bool operator==(const MapIterator& a, const MapIterator& b) {
    return a.leaf_ == b.leaf_ && a.index_ == b.index_;
  }

 private:
  /// Only the end lies behind its leaf's last entry.
  void normalise() {
    if (leaf_ == nullptr || index_ < leaf_->count || leaf_->next.is_null()) return;
    leaf_ = detail::block_at<detail::MapNode>(leaf_->next);
    index_ = 0;
  }

  detail::MapNode* leaf_ = nullptr;
  std::uint32_t index_ = 0;
  mutable detail::MapNode* announced_ = nullptr;
  mutable MapEntry<K, V> entry_;
};

}  // namespace lockstep

template <class K, class V>
struct std::tuple_size<lockstep::MapEntry<K, V>> : std::integral_constant<std::size_t, 2> {};
template <class K, class V>
struct std::tuple_element<0, lockstep::MapEntry<K, V>> {
  using type = const K&;
};
template <class K, class V>
struct std::tuple_element<1, lockstep::MapEntry<K, V>> {
  using type = V&;
};
