// SPDX-License-Identifier: Apache-2.0
#pragma once

/// Pool: objects that refer to each other by Handle instead of by pointer. A handle is an index and a generation, so a
/// handle of an erased object is told from that of its slot's next tenant (until the slot was reused 2^31 times).
/// Objects never move while they live: references stay valid over inserts. Freed slots are reused last in, first out.
/// Not copyable (`clone()` is explicit and keeps handles valid), movable in O(1); a default-constructed one is all zero
/// bytes.
///
///     struct Order { lockstep::Handle<Order> next; std::int64_t price = 0; };
///     lockstep::Pool<Order> orders;
///     const auto id = orders.insert({.price = 100});
///     if (Order* order = orders.find(id)) order->price += 1;       // null when it was erased
///
///     directory | chunk of 8 | chunk of 16 | chunk of 32 | ...     links; the i-th is made when the others are full
///     slot      | generation | next free | object                  generation is odd while the slot is in use
///
/// In a handler that is not const, find() and operator[] announce a write of the object: read by peek(). Inside a
/// handler only.

#include <bit>

#include "lockstep/elements.hpp"

namespace lockstep {

/// Names an object of a Pool<T>; a default-constructed one names none. T may be incomplete.
template <class T>
struct Handle {
  std::uint32_t index = 0;
  std::uint32_t generation = 0;

  [[nodiscard]] bool is_null() const { return generation == 0; }
  friend bool operator==(const Handle&, const Handle&) = default;
};

template <class T>
class alignas(8) Pool {
 public:
  using value_type = T;

  Pool() = default;
  Pool(Pool&& other) noexcept { swap(other); }
  Pool& operator=(Pool&& other) noexcept {
    if (this != &other) {
      free_all();
      swap(other);
    }
    return *this;
  }
  Pool(const Pool&) = delete;
  Pool& operator=(const Pool&) = delete;
  ~Pool() {
    static_assert(check_element<T>());
    free_all();
  }

  [[nodiscard]] Pool clone() const {
    Pool copy;
    copy.base_generation_ = base_generation_;
    while (copy.high_ < high_) {
      const Slot* const from = slot(copy.high_);
      Slot* const to = copy.append_slot();
      to->generation = from->generation;
      to->next_free = from->next_free;
      if (from->in_use()) ::new (static_cast<void*>(to->bytes)) T(detail::clone_of(from->object()));
    }
    copy.free_ = free_;
    copy.size_ = size_;
    return copy;
  }

  [[nodiscard]] std::size_t size() const { return size_; }
  [[nodiscard]] bool empty() const { return size_ == 0; }

  Handle<T> insert(T value) {
    const std::uint32_t index = free_ != 0 ? free_ - 1 : high_;
    Slot* to = nullptr;
    if (free_ != 0) {
      to = slot(index);
      detail::announce(to, 1);
      free_ = to->next_free;
      to->next_free = 0;
    } else {
      to = append_slot();
      to->generation = base_generation_;
    }
    ::new (static_cast<void*>(to->bytes)) T(std::move(value));
    to->generation += 1;
    ++size_;
    return {index, to->generation};
  }

  /// Null when the handle names no object, or one that was erased.
  [[nodiscard]] T* find(Handle<T> handle) {
    Slot* const at = lookup(handle);
    if (at == nullptr) return nullptr;
    detail::announce(&at->object(), 1);
    return &at->object();
  }
  [[nodiscard]] const T* find(Handle<T> handle) const { return peek(handle); }
  [[nodiscard]] const T* peek(Handle<T> handle) const {
    const Slot* const at = lookup(handle);
    return at != nullptr ? &at->object() : nullptr;
  }
  [[nodiscard]] bool contains(Handle<T> handle) const { return lookup(handle) != nullptr; }
  /// Throws std::out_of_range for a stale handle, which traps the handler.
  [[nodiscard]] T& operator[](Handle<T> handle) { return *checked(find(handle), handle); }
  [[nodiscard]] const T& operator[](Handle<T> handle) const { return *checked(peek(handle), handle); }

  /// False when the handle is stale.
  bool erase(Handle<T> handle) {
    Slot* const at = lookup(handle);
    if (at == nullptr) return false;
    detail::announce(at, 1);
    detail::destroy(&at->object(), 1);
    std::memset(at->bytes, 0, sizeof at->bytes);
    at->generation += 1;
    at->next_free = free_;
    free_ = handle.index + 1;
    --size_;
    return true;
  }

  /// Calls `visit(handle, object)` for each object in order of index, which follows from the history of inserts and
  /// erases. On a Pool that is not const it announces a write of each. `visit` may not insert or erase.
  template <class Visit>
  void for_each(Visit&& visit) {
    for (std::uint32_t index = 0; index < high_; ++index) {
      Slot* const at = slot(index);
      if (!at->in_use()) continue;
      detail::announce(&at->object(), 1);
      visit(Handle<T>{index, at->generation}, at->object());
    }
  }
  template <class Visit>
  void for_each(Visit&& visit) const {
    for (std::uint32_t index = 0; index < high_; ++index) {
      const Slot* const at = slot(index);
      if (at->in_use()) visit(Handle<T>{index, at->generation}, at->object());
    }
  }

  /// Gives all memory back; handles given out before stay stale.
  void clear() noexcept {
    std::uint32_t newest = base_generation_;
    for (std::uint32_t index = 0; index < high_; ++index) newest = std::max(newest, slot(index)->generation);
    free_all();
    base_generation_ = newest + newest % 2;
  }

 private:
  struct Slot {
    std::uint32_t generation;
    std::uint32_t next_free;  // index + 1 of the next free slot, 0 at the end
    alignas(T) std::byte bytes[sizeof(T)];

    [[nodiscard]] bool in_use() const { return generation % 2 != 0; }
    [[nodiscard]] T& object() { return *reinterpret_cast<T*>(bytes); }
    [[nodiscard]] const T& object() const { return *reinterpret_cast<const T*>(bytes); }
  };
  static constexpr std::uint32_t first_slots = 8;
  static constexpr std::uint32_t max_chunks = 28;

  [[nodiscard]] static std::uint32_t chunk_of(std::uint32_t index) {
    return static_cast<std::uint32_t>(std::bit_width(index + first_slots)) - 4;
  }
  [[nodiscard]] static std::uint64_t chunk_bytes(std::uint32_t chunk) {
    return (std::uint64_t{first_slots} << chunk) * sizeof(Slot);
  }
  [[nodiscard]] Link* directory() const { return detail::block_at<Link>(directory_); }
  [[nodiscard]] Slot* slot(std::uint32_t index) const {
    const std::uint32_t chunk = chunk_of(index);
    return detail::block_at<Slot>(directory()[chunk]) + (index + first_slots - (first_slots << chunk));
  }
  [[nodiscard]] Slot* lookup(Handle<T> handle) const {
    if (handle.index >= high_ || handle.generation % 2 == 0) return nullptr;
    Slot* const at = slot(handle.index);
    return at->generation == handle.generation ? at : nullptr;
  }
  template <class Object>
  [[nodiscard]] Object* checked(Object* object, Handle<T> handle) const {
    if (object == nullptr) [[unlikely]]
      throw_stale(handle);
    return object;
  }
  [[noreturn, gnu::cold, gnu::noinline]] static void throw_stale(Handle<T> handle) {
    throw std::out_of_range("lockstep::Pool: no object has index " + std::to_string(handle.index) + " and generation " +
                            std::to_string(handle.generation) + "; it was erased, or never was");
  }

  /// A new slot, announced, behind the others.
  Slot* append_slot() {
    const std::uint32_t chunk = chunk_of(high_);
    if (directory_.is_null()) directory_ = detail::allocate_block(max_chunks * sizeof(Link));
    if (chunk == max_chunks) throw TrapError{TrapKind::arena_exhausted};
    if (directory()[chunk].is_null()) {
      const Link link = detail::allocate_block(chunk_bytes(chunk));
      detail::announce(directory() + chunk, 1);
      directory()[chunk] = link;
    }
    Slot* const made = slot(high_);
    detail::announce(made, 1);
    ++high_;
    return made;
  }
  void free_all() noexcept {
    if (directory_.is_null()) return;
    if constexpr (!std::is_trivially_destructible_v<T>) {
      for (std::uint32_t index = 0; index < high_; ++index) {
        if (slot(index)->in_use()) detail::destroy(&slot(index)->object(), 1);
      }
    }
    for (std::uint32_t chunk = 0; chunk < max_chunks && !directory()[chunk].is_null(); ++chunk) {
      detail::free_block(directory()[chunk], chunk_bytes(chunk));
    }
    detail::free_block(directory_, max_chunks * sizeof(Link));
    directory_ = {};
    high_ = free_ = size_ = 0;
  }
  void swap(Pool& other) noexcept {
    std::swap(directory_, other.directory_);
    std::swap(high_, other.high_);
    std::swap(free_, other.free_);
    std::swap(size_, other.size_);
    std::swap(base_generation_, other.base_generation_);
  }

  Link directory_;
  std::uint32_t high_ = 0;  // slots ever used
  std::uint32_t free_ = 0;  // index + 1 of the first free slot
  std::uint32_t size_ = 0;
  std::uint32_t base_generation_ = 0;  // of slots not yet used; even
  [[maybe_unused]] std::uint32_t zero_ = 0;
};
static_assert(sizeof(Pool<std::uint64_t>) == 24);

template <class T>
struct ContainerTraits<Pool<T>> {
  static constexpr std::string_view kind = "pool/1";
  static constexpr std::uint64_t parameter = 0;
  using Elements = TypeList<T>;
};

}  // namespace lockstep
