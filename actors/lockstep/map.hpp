// SPDX-License-Identifier: Apache-2.0
#pragma once

/// Map: an ordered map in the arena, a B+tree: O(log n) for everything, iteration in key order. Keys are integers,
/// enums, Fixed, small aggregates with operator<=>, or String (looked up by std::string_view); values are any state.
/// Not copyable (`clone()` is explicit), movable in O(1); a default-constructed one is all zero bytes.
///
///     lockstep::Map<std::uint64_t, std::int64_t> accounts;
///     accounts[7] += 100;
///     if (const auto* balance = accounts.peek(8)) ...                 // reads, announces nothing
///     for (auto& [id, balance] : accounts) balance += interest(balance);
///     for (auto& [id, balance] : std::as_const(accounts)) sum += balance;
///
/// In a handler that is not const, find(), operator[] and a walk announce a write of what they give out: read by
/// peek(), get() and std::as_const. Inserts and erases invalidate references and iterators. Below 2^32 entries. Inside
/// a handler only.

#include <tuple>

#include "lockstep/map_iterator.hpp"

namespace lockstep {

template <class K, class V>
class alignas(8) Map {
  using Layout = detail::MapLayout<K, V>;
  using Traits = detail::KeyTraits<K>;
  using Node = detail::MapNode;

 public:
  using Key = detail::KeyArg<K>;  ///< how keys are passed: a value, const K&, or std::string_view
  using iterator = MapIterator<K, V>;
  using const_iterator = MapIterator<K, const V>;

  Map() = default;
  Map(Map&& other) noexcept { swap(other); }
  Map& operator=(Map&& other) noexcept {
    if (this != &other) {
      clear();
      swap(other);
    }
    return *this;
  }
  Map(const Map&) = delete;
  Map& operator=(const Map&) = delete;
  ~Map() {
    static_assert(check_element<V>());
    clear();
  }

  [[nodiscard]] Map clone() const {
    Map copy;
    for (const auto& [key, value] : *this) copy.insert(Traits::view(key), detail::clone_of(value));
    return copy;
  }

  [[nodiscard]] std::size_t size() const { return size_; }
  [[nodiscard]] bool empty() const { return size_ == 0; }

  /// The value of `key`; a default value is inserted if there is none.
  V& operator[](Key key) { return *find_or_insert(key).first; }
  /// False, and nothing changes, if the key is there.
  bool insert(Key key, V value) {
    const auto [slot, is_new] = find_or_insert(key);
    if (is_new) *slot = std::move(value);
    return is_new;
  }

  /// Null if there is none.
  [[nodiscard]] V* find(Key key) {
    V* const value = lookup(key);
    if (value != nullptr) detail::announce(value, 1);
    return value;
  }
  [[nodiscard]] const V* find(Key key) const { return lookup(key); }
  [[nodiscard]] const V* peek(Key key) const { return lookup(key); }
  [[nodiscard]] bool contains(Key key) const { return lookup(key) != nullptr; }
  [[nodiscard]] V get(Key key, V fallback) const {
    const V* const value = lookup(key);
    return value != nullptr ? *value : fallback;
  }

  /// False if there was none. `key` may lie in the entry.
  bool erase(Key key) {
    if (root_.is_null()) return false;
    Path path;
    Node* const leaf = descend(key, path);
    const std::uint32_t index = Layout::template rank<false>(Layout::keys(leaf), leaf->count, key);
    if (!is_at(leaf, index, key)) return false;
    announce_from(leaf, index, leaf->count);
    detail::destroy(Layout::keys(leaf) + index, 1);
    detail::destroy(Layout::values(leaf) + index, 1);
    Layout::close_gap(Layout::keys(leaf), leaf->count, index);
    Layout::close_gap(Layout::values(leaf), leaf->count, index);
    --leaf->count;
    --size_;
    if (leaf->count < Layout::leaf_least) rebalance(path, leaf);
    return true;
  }
  /// Returns where the next entry then is.
  iterator erase(iterator at) {
    const K key = Traits::make(Traits::view(at->key()));
    erase(Traits::view(key));
    return lower_bound(Traits::view(key));
  }
  /// Erases the entries for which `predicate(key, value)` is true; returns how many.
  template <class Predicate>
  std::size_t erase_if(Predicate&& predicate) {
    const std::size_t before = size_;
    for (const_iterator at = std::as_const(*this).begin(); at != std::as_const(*this).end();) {
      if (!predicate(at->key(), at->value())) {
        ++at;
        continue;
      }
      const K key = Traits::make(Traits::view(at->key()));
      erase(Traits::view(key));
      at = std::as_const(*this).lower_bound(Traits::view(key));
    }
    return before - size_;
  }
  /// Gives all memory back.
  void clear() noexcept {
    if (root_.is_null()) return;
    free_tree(root_);
    root_ = first_ = last_ = {};
    size_ = 0;
  }

  [[nodiscard]] iterator begin() { return first<V>(); }
  [[nodiscard]] iterator end() { return behind_last<V>(); }
  [[nodiscard]] const_iterator begin() const { return first<const V>(); }
  [[nodiscard]] const_iterator end() const { return behind_last<const V>(); }
  /// The first entry whose key is not less than `key`; upper_bound: that is greater.
  [[nodiscard]] iterator lower_bound(Key key) { return bound<V, false>(key); }
  [[nodiscard]] const_iterator lower_bound(Key key) const { return bound<const V, false>(key); }
  [[nodiscard]] iterator upper_bound(Key key) { return bound<V, true>(key); }
  [[nodiscard]] const_iterator upper_bound(Key key) const { return bound<const V, true>(key); }

  friend bool operator==(const Map& a, const Map& b) {
    if (a.size_ != b.size_) return false;
    for (const_iterator at = a.begin(), other = b.begin(); at != a.end(); ++at, ++other) {
      if (!(at->key() == other->key()) || !(at->value() == other->value())) return false;
    }
    return true;
  }

 private:
  struct Path {  // inner nodes from the root down, and which child was taken
    static constexpr std::uint32_t max_depth = 32;
    Node* nodes[max_depth];
    std::uint32_t taken[max_depth];
    std::uint32_t depth = 0;
  };
  struct Separator {  // a key in transit between nodes
    alignas(K) std::byte bytes[sizeof(K)] = {};
    [[nodiscard]] K* key() { return reinterpret_cast<K*>(bytes); }
  };

  [[nodiscard]] static Node* node_at(Link link) { return detail::block_at<Node>(link); }
  [[nodiscard]] static bool is_at(Node* leaf, std::uint32_t index, Key key) {
    return index < leaf->count && Traits::equal(Traits::view(Layout::keys(leaf)[index]), key);
  }
  /// Announces a leaf's count and the places [index, end).
  static void announce_from(Node* leaf, std::uint32_t index, std::uint32_t end) {
    detail::announce(leaf, 1);
    detail::announce(Layout::keys(leaf) + index, end - index);
    detail::announce(Layout::values(leaf) + index, end - index);
  }

  [[nodiscard]] Node* leaf_of(Key key) const {
    Node* node = node_at(root_);
    while (node->level != 0) {
      node = node_at(Layout::children(node)[Layout::template rank<true>(Layout::keys(node), node->count - 1, key)]);
    }
    return node;
  }
  [[nodiscard]] Node* descend(Key key, Path& path) const {
    Node* node = node_at(root_);
    LOCKSTEP_ASSERT(node->level <= Path::max_depth, "a map of less than 2^32 entries is not as high");
    while (node->level != 0) {
      const std::uint32_t child = Layout::template rank<true>(Layout::keys(node), node->count - 1, key);
      path.nodes[path.depth] = node;
      path.taken[path.depth++] = child;
      node = node_at(Layout::children(node)[child]);
    }
    return node;
  }
  [[nodiscard]] V* lookup(Key key) const {
    if (root_.is_null()) return nullptr;
    Node* const leaf = leaf_of(key);
    const std::uint32_t index = Layout::template rank<false>(Layout::keys(leaf), leaf->count, key);
    return is_at(leaf, index, key) ? Layout::values(leaf) + index : nullptr;
  }

  template <class Value>
  [[nodiscard]] MapIterator<K, Value> first() const {
    return first_.is_null() ? MapIterator<K, Value>() : MapIterator<K, Value>(node_at(first_), 0);
  }
  template <class Value>
  [[nodiscard]] MapIterator<K, Value> behind_last() const {
    if (last_.is_null()) return {};
    return {node_at(last_), node_at(last_)->count};
  }
  template <class Value, bool or_equal>
  [[nodiscard]] MapIterator<K, Value> bound(Key key) const {
    if (root_.is_null()) return {};
    Node* const leaf = leaf_of(key);
    return {leaf, Layout::template rank<or_equal>(Layout::keys(leaf), leaf->count, key)};
  }

  /// The announced value of `key`, and whether it was inserted (a default value).
  std::pair<V*, bool> find_or_insert(Key key) {
    if (root_.is_null()) root_ = first_ = last_ = Layout::make(0);
    Node* leaf = leaf_of(key);
    std::uint32_t index = Layout::template rank<false>(Layout::keys(leaf), leaf->count, key);
    if (is_at(leaf, index, key)) {
      V* const value = Layout::values(leaf) + index;
      detail::announce(value, 1);
      return {value, false};
    }
    K fresh = Traits::make(key);
    if (leaf->count == Layout::leaf_capacity) std::tie(leaf, index) = split_leaf(key, index);
    announce_from(leaf, index, leaf->count + 1);
    Layout::open_gap(Layout::keys(leaf), leaf->count, index);
    Layout::open_gap(Layout::values(leaf), leaf->count, index);
    ::new (static_cast<void*>(Layout::keys(leaf) + index)) K(std::move(fresh));
    V* const value = ::new (static_cast<void*>(Layout::values(leaf) + index)) V();
    ++leaf->count;
    ++size_;
    return {value, true};
  }

  /// Splits the full leaf where `key` would go to `index`; returns where it goes then. The last leaf is left full when
  /// the key goes behind it: keys that only grow fill their leaves.
  [[gnu::noinline]] std::pair<Node*, std::uint32_t> split_leaf(Key key, std::uint32_t index) {
    Path path;
    Node* const left = descend(key, path);
    const bool at_end = left->next.is_null() && index == left->count;
    const std::uint32_t kept = at_end ? left->count : left->count / 2;
    const Link left_link = Arena::current().link_to(left);
    Separator separator;
    ::new (static_cast<void*>(separator.key())) K(Traits::make(at_end ? key : Traits::view(Layout::keys(left)[kept])));
    const Link right_link = Layout::make(0);
    Node* const right = node_at(right_link);
    Layout::announce_node(left);
    Layout::split_leaf(left, right, kept);
    right->prev = left_link;
    right->next = left->next;
    left->next = right_link;
    if (right->next.is_null()) {
      last_ = right_link;
    } else {
      detail::announce(node_at(right->next), 1);
      node_at(right->next)->prev = right_link;
    }
    add_child(path, separator, right_link);
    if (index > kept || at_end) return {right, index - kept};
    return {left, index};
  }

  /// Hangs `right`, whose keys are not below the separator, into the inner nodes behind the child taken.
  void add_child(Path& path, Separator separator, Link right) {
    while (path.depth != 0) {
      --path.depth;
      Node* const parent = path.nodes[path.depth];
      const std::uint32_t behind = path.taken[path.depth];
      Layout::announce_node(parent);
      if (parent->count < Layout::inner_capacity) return put_child(parent, behind, separator, right);
      const bool at_end = behind + 1 == parent->count;
      const std::uint32_t kept = at_end ? parent->count - 1 : parent->count / 2;
      const Link upper = Layout::make(parent->level);
      Separator between;
      Layout::split_inner(parent, node_at(upper), kept, between.key());
      if (behind < kept) {
        put_child(parent, behind, separator, right);
      } else {
        put_child(node_at(upper), behind - kept, separator, right);
      }
      separator = between;
      right = upper;
    }
    const Link old_root = root_;
    root_ = Layout::make(node_at(old_root)->level + 1);
    Node* const root = node_at(root_);
    root->count = 1;
    Layout::children(root)[0] = old_root;
    put_child(root, 0, separator, right);
  }
  static void put_child(Node* parent, std::uint32_t behind, Separator& separator, Link right) {
    Layout::open_gap(Layout::keys(parent), parent->count - 1, behind);
    Layout::open_gap(Layout::children(parent), parent->count, behind + 1);
    detail::relocate(Layout::keys(parent) + behind, separator.key(), 1);
    Layout::children(parent)[behind + 1] = right;
    ++parent->count;
  }

  /// Merges or evens out nodes with too few entries, from a leaf upwards.
  [[gnu::noinline]] void rebalance(Path& path, Node* node) {
    while (path.depth != 0 && node->count < Layout::least(node)) {
      --path.depth;
      Node* const parent = path.nodes[path.depth];
      const std::uint32_t child = path.taken[path.depth];
      const std::uint32_t left_child = child + 1 < parent->count ? child : child - 1;
      Node* const left = node_at(Layout::children(parent)[left_child]);
      Node* const right = node_at(Layout::children(parent)[left_child + 1]);
      Layout::announce_node(parent);
      Layout::announce_node(left);
      Layout::announce_node(right);
      if (left->count + right->count > Layout::capacity(left)) return even_out(left, right, parent, left_child);
      merge(left, right, parent, left_child);
      node = parent;
    }
    if (path.depth == 0) shrink_root();
  }
  static void even_out(Node* left, Node* right, Node* parent, std::uint32_t left_child) {
    K* const separator = Layout::keys(parent) + left_child;
    const std::uint32_t half = (left->count + right->count) / 2;
    if (left->count < half) {
      Layout::move_left(left, right, half - left->count, separator);
    } else {
      Layout::move_right(left, right, left->count - half, separator);
    }
    if (left->level == 0) *separator = Traits::make(Traits::view(Layout::keys(right)[0]));
  }
  void merge(Node* left, Node* right, Node* parent, std::uint32_t left_child) {
    const Link left_link = Layout::children(parent)[left_child];
    const Link right_link = Layout::children(parent)[left_child + 1];
    K* const separator = Layout::keys(parent) + left_child;
    const bool is_leaf = left->level == 0;
    Layout::merge(left, right, separator);
    if (is_leaf) {
      detail::destroy(separator, 1);
      left->next = right->next;
      if (left->next.is_null()) {
        last_ = left_link;
      } else {
        detail::announce(node_at(left->next), 1);
        node_at(left->next)->prev = left_link;
      }
    }
    Layout::close_gap(Layout::keys(parent), parent->count - 1, left_child);
    Layout::close_gap(Layout::children(parent), parent->count, left_child + 1);
    --parent->count;
    detail::free_block(right_link, is_leaf ? Layout::leaf_bytes : Layout::inner_bytes);
  }
  void shrink_root() {
    Node* const root = node_at(root_);
    if (root->level == 0) {
      if (root->count == 0) clear();
    } else if (root->count == 1) {
      const Link old_root = root_;
      root_ = Layout::children(root)[0];
      detail::free_block(old_root, Layout::inner_bytes);
    }
  }

  static void free_tree(Link link) noexcept {
    Node* const node = node_at(link);
    if (node->level == 0) {
      detail::destroy(Layout::keys(node), node->count);
      detail::destroy(Layout::values(node), node->count);
      return detail::free_block(link, Layout::leaf_bytes);
    }
    detail::destroy(Layout::keys(node), node->count - 1);
    for (std::uint32_t child = 0; child < node->count; ++child) free_tree(Layout::children(node)[child]);
    detail::free_block(link, Layout::inner_bytes);
  }
  void swap(Map& other) noexcept {
    std::swap(root_, other.root_);
    std::swap(first_, other.first_);
    std::swap(last_, other.last_);
    std::swap(size_, other.size_);
  }

  Link root_;
  Link first_;  // leaves
  Link last_;
  std::uint32_t size_ = 0;
};
static_assert(sizeof(Map<std::uint64_t, std::uint64_t>) == 16);

template <class K, class V>
struct ContainerTraits<Map<K, V>> {
  static constexpr std::string_view kind = "map/1";
  static constexpr std::uint64_t parameter = 0;
  using Elements = TypeList<K, V>;
};

}  // namespace lockstep
