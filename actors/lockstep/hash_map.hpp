// SPDX-License-Identifier: Apache-2.0
#pragma once

/// HashMap: an unordered map in the arena: open addressing with linear probing, one control byte a slot (0: free, else
/// 0x80 and seven bits of the hash), at most 3/4 full; erasing shifts the entries behind it back, so there are no
/// tombstones. Keys and values as Map's. Not copyable (`clone()` is explicit), movable in O(1); a default-constructed
/// one is all zero bytes.
///
///     lockstep::HashMap<lockstep::String, lockstep::Vector<std::uint64_t>> sessions;
///     sessions["alice"].push_back(7);
///
/// It cannot be iterated, on purpose: the order would follow from the hash function and the growth policy, and effects
/// that follow from it would tie every journal to them. Keep a Map, or a Vector of keys beside it, where order matters.
///
/// Growing moves all entries at once: a handler that meets it takes long (some 20 ns an entry). reserve() beforehand,
/// or Map, avoids that. Inserts and erases invalidate references. Inside a handler only.
///
///     block | control[capacity + 8] | slots[capacity] |      control's last 8 bytes repeat its first: a probe reads
///                                                            8 bytes at once from any place

#include <bit>
#include <tuple>

#include "lockstep/key.hpp"

namespace lockstep {

template <class K, class V>
class alignas(8) HashMap {
  using Traits = detail::KeyTraits<K>;

 public:
  using Key = detail::KeyArg<K>;  ///< how keys are passed: a value, const K&, or std::string_view

  HashMap() = default;
  HashMap(HashMap&& other) noexcept { swap(other); }
  HashMap& operator=(HashMap&& other) noexcept {
    if (this != &other) {
      clear();
      swap(other);
    }
    return *this;
  }
  HashMap(const HashMap&) = delete;
  HashMap& operator=(const HashMap&) = delete;
  ~HashMap() {
    static_assert(check_element<V>());
    clear();
  }

  /// Equal in what it holds; its bytes are those of a map into which these entries were inserted anew.
  [[nodiscard]] HashMap clone() const {
    HashMap copy;
    copy.reserve(size_);
    for_each_slot([&copy](const Slot& slot) { copy.insert(Traits::view(slot.key), detail::clone_of(slot.value)); });
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

  /// False if there was none.
  bool erase(Key key) {
    if (table_.is_null()) return false;
    const auto [hole, found] = probe(Traits::hash(key), key);
    if (!found) return false;
    Slot* const slots = slots_at();
    detail::announce(slots + hole, 1);
    detail::destroy(slots + hole, 1);
    detail::zero(slots + hole, 1);
    set_control(hole, 0);
    --size_;
    shift_back(hole);
    return true;
  }
  /// Makes room for so many entries without growing.
  void reserve(std::size_t entries) {
    if (entries > capacity() / 4 * 3) rebuild(capacity_for(entries));
  }
  /// Gives all memory back.
  void clear() noexcept {
    if (table_.is_null()) return;
    if constexpr (!std::is_trivially_destructible_v<Slot>) {
      for_each_slot([](Slot& slot) { detail::destroy(&slot, 1); });
    }
    detail::free_block(table_, table_bytes(capacity()));
    table_ = {};
    size_ = log2_capacity_ = 0;
  }

  friend bool operator==(const HashMap& a, const HashMap& b) {
    bool equal = a.size_ == b.size_;
    if (!equal) return false;
    a.for_each_slot([&](const Slot& slot) {
      const V* const other = b.peek(Traits::view(slot.key));
      equal = equal && other != nullptr && *other == slot.value;
    });
    return equal;
  }

 private:
  struct Slot {
    K key;
    V value;
  };
  static constexpr std::uint32_t group = 8;  // control bytes read at once, and the least capacity
  static constexpr std::uint64_t high_bits = 0x8080808080808080ULL;
  static constexpr std::uint64_t low_bits = 0x0101010101010101ULL;

  [[nodiscard]] std::uint64_t capacity() const { return table_.is_null() ? 0 : std::uint64_t{1} << log2_capacity_; }
  [[nodiscard]] std::uint64_t mask() const { return (std::uint64_t{1} << log2_capacity_) - 1; }
  [[nodiscard]] static std::uint64_t capacity_for(std::size_t entries) {
    return std::max<std::uint64_t>(group, std::bit_ceil((std::uint64_t{entries} * 4 + 2) / 3));
  }
  [[nodiscard]] static std::uint64_t slots_offset(std::uint64_t capacity) { return (capacity + group + 15) / 16 * 16; }
  [[nodiscard]] static std::uint64_t table_bytes(std::uint64_t capacity) {
    return slots_offset(capacity) + capacity * sizeof(Slot);
  }
  [[nodiscard]] static std::uint8_t tag(std::uint64_t hash) { return static_cast<std::uint8_t>(0x80 | (hash >> 57)); }

  [[nodiscard]] std::uint8_t* control() const { return detail::block_at<std::uint8_t>(table_); }
  [[nodiscard]] Slot* slots_at() const { return reinterpret_cast<Slot*>(control() + slots_offset(capacity())); }

  void set_control(std::uint64_t slot, std::uint8_t value) {
    std::uint8_t* const bytes = control();
    detail::announce(bytes + slot, 1);
    bytes[slot] = value;
    if (slot < group) {
      detail::announce(bytes + capacity() + slot, 1);
      bytes[capacity() + slot] = value;
    }
  }

  /// The slot of `key`, or the free slot where it would go. Goes slot by slot from hash & mask; reading eight at once
  /// is only faster.
  [[nodiscard]] std::pair<std::uint64_t, bool> probe(std::uint64_t hash, Key key) const {
    const std::uint8_t* const bytes = control();
    const Slot* const slots = slots_at();
    const std::uint64_t tags = low_bits * tag(hash);
    for (std::uint64_t at = hash & mask();; at = (at + group) & mask()) {
      std::uint64_t word;
      std::memcpy(&word, bytes + at, sizeof word);
      const std::uint64_t other = word ^ tags;
      for (std::uint64_t match = (other - low_bits) & ~other & high_bits; match != 0; match &= match - 1) {
        const std::uint64_t slot = (at + static_cast<std::uint64_t>(std::countr_zero(match)) / 8) & mask();
        if (Traits::equal(Traits::view(slots[slot].key), key)) return {slot, true};
      }
      if (const std::uint64_t free = ~word & high_bits; free != 0) {
        return {(at + static_cast<std::uint64_t>(std::countr_zero(free)) / 8) & mask(), false};
      }
    }
  }
  [[nodiscard]] V* lookup(Key key) const {
    if (table_.is_null()) return nullptr;
    const auto [slot, found] = probe(Traits::hash(key), key);
    return found ? &slots_at()[slot].value : nullptr;
  }

  /// The announced value of `key`, and whether it was inserted (a default value).
  std::pair<V*, bool> find_or_insert(Key key) {
    const std::uint64_t hash = Traits::hash(key);
    std::uint64_t slot = 0;
    if (!table_.is_null()) {
      bool found = false;
      std::tie(slot, found) = probe(hash, key);
      if (found) {
        V* const value = &slots_at()[slot].value;
        detail::announce(value, 1);
        return {value, false};
      }
    }
    K fresh = Traits::make(key);
    if (std::uint64_t{size_} + 1 > capacity() / 4 * 3) {
      rebuild(capacity_for(std::max(std::uint64_t{size_} + 1, capacity())));
      slot = probe(hash, Traits::view(fresh)).first;
    }
    Slot* const at = slots_at() + slot;
    detail::announce(at, 1);
    set_control(slot, tag(hash));
    ::new (static_cast<void*>(&at->key)) K(std::move(fresh));
    V* const value = ::new (static_cast<void*>(&at->value)) V();
    ++size_;
    return {value, true};
  }

  /// Moves all entries to a new table.
  [[gnu::noinline]] void rebuild(std::uint64_t new_capacity) {
    const Link old_table = table_;
    const std::uint64_t old_capacity = capacity();
    const std::uint8_t* const old_control = old_capacity == 0 ? nullptr : control();
    Slot* const old_slots = old_capacity == 0 ? nullptr : slots_at();
    const Link table = detail::allocate_block(table_bytes(new_capacity));
    detail::announce(detail::block_at<std::byte>(table), table_bytes(new_capacity));
    table_ = table;
    log2_capacity_ = static_cast<std::uint32_t>(std::countr_zero(new_capacity));
    std::uint8_t* const bytes = control();
    Slot* const slots = slots_at();
    for (std::uint64_t from = 0; from < old_capacity; ++from) {
      if (old_control[from] == 0) continue;
      std::uint64_t to = Traits::hash(Traits::view(old_slots[from].key)) & mask();
      while (bytes[to] != 0) to = (to + 1) & mask();
      bytes[to] = old_control[from];
      detail::relocate(slots + to, old_slots + from, 1);
    }
    std::memcpy(bytes + new_capacity, bytes, group);
    if (old_capacity != 0) detail::free_block(old_table, table_bytes(old_capacity));
  }

  /// Closes the gap that an erased entry leaves in its run: moves back each entry that the gap parts from its place.
  void shift_back(std::uint64_t hole) {
    const std::uint8_t* const bytes = control();
    Slot* const slots = slots_at();
    for (std::uint64_t at = (hole + 1) & mask(); bytes[at] != 0; at = (at + 1) & mask()) {
      const std::uint64_t home = Traits::hash(Traits::view(slots[at].key)) & mask();
      if (((at - home) & mask()) < ((at - hole) & mask())) continue;
      detail::announce(slots + hole, 1);
      detail::announce(slots + at, 1);
      detail::relocate(slots + hole, slots + at, 1);
      detail::zero(slots + at, 1);
      set_control(hole, bytes[at]);
      set_control(at, 0);
      hole = at;
    }
  }

  template <class Visit>
  void for_each_slot(Visit&& visit) const {
    if (table_.is_null()) return;
    const std::uint8_t* const bytes = control();
    Slot* const slots = slots_at();
    for (std::uint64_t slot = 0; slot <= mask(); ++slot) {
      if (bytes[slot] != 0) visit(slots[slot]);
    }
  }
  void swap(HashMap& other) noexcept {
    std::swap(table_, other.table_);
    std::swap(log2_capacity_, other.log2_capacity_);
    std::swap(size_, other.size_);
  }

  Link table_;
  std::uint32_t log2_capacity_ = 0;
  std::uint32_t size_ = 0;
  [[maybe_unused]] std::uint32_t zero_ = 0;
};
static_assert(sizeof(HashMap<std::uint64_t, std::uint64_t>) == 16);

template <class K, class V>
struct ContainerTraits<HashMap<K, V>> {
  static constexpr std::string_view kind = "hash_map/1";
  static constexpr std::uint64_t parameter = 0;
  using Elements = TypeList<K, V>;
};

}  // namespace lockstep
