// SPDX-License-Identifier: Apache-2.0
#pragma once

/// The queues of the comparison behind two interfaces, so that the loops around them are the same code.
///
/// One item at a time:  bool push(const Item&)   void pushed_all()     bool pop(Item&)   void popped_all()
/// A batch at a time:   push_batch(first, most)  -> how many items, numbered from `first`, went in
///                      pop_batch(checker, most) -> how many came out

#include <readerwriterqueue/readerwriterqueue.h>

#include <algorithm>
#include <array>
#include <boost/lockfree/spsc_queue.hpp>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "bench/ring/article_ring.hpp"
#include "bench/ring/flag_ring.hpp"
#include "bench/ring/items.hpp"
#include "bench/ring/trick_ring.hpp"
#include "runtime/ring/byte_ring.hpp"
#include "runtime/ring/spsc_ring.hpp"

namespace lockstep::bench {

inline constexpr std::size_t capacity_items = 4096;

template <class Item>
struct Article {
  ArticleRing<Item, capacity_items> ring;
  bool push(const Item& item) { return ring.push(item); }
  void pushed_all() {}
  bool pop(Item& item) { return ring.pop(item); }
  void popped_all() {}
};

template <class Item>
struct Flagged {
  FlagRing<Item, capacity_items> ring;
  bool push(const Item& item) { return ring.push(item); }
  void pushed_all() {}
  bool pop(Item& item) { return ring.pop(item); }
  void popped_all() {}
};

template <class Item>
struct OursSingle {
  SpscRing<Item> ring{capacity_items};
  bool push(const Item& item) { return ring.push(item); }
  void pushed_all() {}
  bool pop(Item& item) { return ring.pop(item); }
  void popped_all() {}
};

template <class Item>
struct OursLazy {
  SpscRing<Item> ring{capacity_items};
  bool push(const Item& item) { return ring.push_lazy(item); }
  void pushed_all() { ring.publish(); }
  bool pop(Item& item) { return ring.pop_lazy(item); }
  void popped_all() { ring.flush(); }
};

template <class Item, Tricks tricks>
struct WithTricks {
  TrickRing<Item, capacity_items, tricks> ring;
  bool push(const Item& item) { return ring.push(item); }
  void pushed_all() { ring.pushed_all(); }
  bool pop(Item& item) { return ring.pop(item); }
  void popped_all() { ring.popped_all(); }
};

template <class Item>
struct BoostSingle {
  boost::lockfree::spsc_queue<Item, boost::lockfree::capacity<capacity_items>> queue;
  bool push(const Item& item) { return queue.push(item); }
  void pushed_all() {}
  bool pop(Item& item) { return queue.pop(item); }
  void popped_all() {}
};

template <class Item>
struct Moodycamel {
  moodycamel::ReaderWriterQueue<Item> queue{capacity_items};
  bool push(const Item& item) { return queue.try_enqueue(item); }
  void pushed_all() {}
  bool pop(Item& item) { return queue.try_dequeue(item); }
  void popped_all() {}
};

template <class Item>
struct OursBatch {
  SpscRing<Item> ring{capacity_items};

  std::size_t push_batch(std::uint64_t first, std::size_t most) {
    const auto slots = ring.claim(most);
    for (auto& slot : slots) slot = Item::make(first++);
    if (!slots.empty()) ring.commit(slots.size());
    return slots.size();
  }
  std::size_t pop_batch(Checker& checker, std::size_t most) {
    const auto items = ring.peek(most);
    for (const auto& item : items) checker.take(item);
    if (!items.empty()) ring.release(items.size());
    return items.size();
  }
};

/// The ring of variable-length frames with frames of one item each: 16 bytes of header and padding more to move.
/// Published and given back once a batch.
struct OursFrames {
  ByteRing ring{capacity_items * (sizeof(Line) + ByteRing::frame_alignment)};

  std::size_t push_batch(std::uint64_t first, std::size_t most) {
    std::size_t pushed = 0;
    for (; pushed < most; ++pushed) {
      const auto frame = ring.claim(sizeof(Line));
      if (frame.empty()) break;
      const Line item = Line::make(first + pushed);
      std::memcpy(frame.data(), &item, sizeof item);
    }
    ring.publish();
    return pushed;
  }
  std::size_t pop_batch(Checker& checker, std::size_t most) {
    std::size_t popped = 0;
    for (; popped < most; ++popped) {
      const auto frame = ring.peek();
      if (frame.size() != sizeof(Line)) break;
      Line item;
      std::memcpy(&item, frame.data(), sizeof item);
      checker.take(item);
      ring.release();
    }
    ring.flush();
    return popped;
  }
};

/// Boost's arrays; a batch that went in only in part is offered again from where it stopped.
template <class Item>
struct BoostBatch {
  static constexpr std::size_t longest_batch = 256;
  boost::lockfree::spsc_queue<Item, boost::lockfree::capacity<capacity_items>> queue;
  std::array<Item, longest_batch> outgoing;
  std::array<Item, longest_batch> incoming;

  std::size_t push_batch(std::uint64_t first, std::size_t most) {
    for (std::size_t i = 0; i < most; ++i) outgoing[i] = Item::make(first + i);
    return queue.push(outgoing.data(), most);
  }
  std::size_t pop_batch(Checker& checker, std::size_t most) {
    const std::size_t items = queue.pop(incoming.data(), most);
    for (std::size_t i = 0; i < items; ++i) checker.take(incoming[i]);
    return items;
  }
};

}  // namespace lockstep::bench
