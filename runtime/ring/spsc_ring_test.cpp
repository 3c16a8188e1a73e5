// SPDX-License-Identifier: Apache-2.0
#include "runtime/ring/spsc_ring.hpp"

#include <doctest/doctest.h>

#include <array>
#include <cstdint>
#include <deque>
#include <memory>
#include <random>
#include <thread>
#include <vector>

using lockstep::SpscRing;

namespace {

using Ring = SpscRing<std::uint64_t>;

/// A ring and what the producer and the consumer may know of it, in one thread: `sent` is what was pushed and not yet
/// popped. Lazy work is made visible before each look from the other side.
class Model {
 public:
  explicit Model(std::size_t capacity) : ring_(capacity) {}

  void produce(std::mt19937_64& random) {
    ring_.flush();
    const std::size_t room = ring_.capacity() - sent_.size();
    switch (random() % 3) {
      case 0:
        CHECK(ring_.push(next_) == (room != 0));
        if (room != 0) sent_.push_back(next_++);
        break;
      case 1:
        CHECK(ring_.push_lazy(next_) == (room != 0));
        if (room != 0) sent_.push_back(next_++);
        break;
      default: {
        const std::size_t wanted = random() % (ring_.capacity() + 2);
        const auto slots = ring_.claim(wanted);
        CHECK(slots.size() <= std::min(wanted, room));
        CHECK(slots.empty() == (std::min(wanted, room) == 0));
        const std::size_t used = random() % (slots.size() + 1);
        for (std::size_t i = 0; i < used; ++i) sent_.push_back(slots[i] = next_++);
        ring_.commit(used);
      }
    }
  }

  void consume(std::mt19937_64& random) {
    ring_.publish();
    CHECK(ring_.is_empty() == sent_.empty());
    switch (random() % 3) {
      case 0:
        take_one([this](std::uint64_t& item) { return ring_.pop(item); });
        break;
      case 1:
        take_one([this](std::uint64_t& item) { return ring_.pop_lazy(item); });
        break;
      default: {
        const std::size_t wanted = random() % (ring_.capacity() + 2);
        const auto items = ring_.peek(wanted);
        CHECK(items.size() <= std::min(wanted, sent_.size()));
        CHECK(items.empty() == (std::min(wanted, sent_.size()) == 0));
        const std::size_t used = random() % (items.size() + 1);
        for (std::size_t i = 0; i < used; ++i) {
          CHECK(items[i] == sent_.front());
          sent_.pop_front();
        }
        ring_.release(used);
      }
    }
  }

 private:
  template <class Pop>
  void take_one(Pop pop) {
    std::uint64_t item = 0;
    REQUIRE(pop(item) == !sent_.empty());
    if (sent_.empty()) return;
    CHECK(item == sent_.front());
    sent_.pop_front();
  }

  Ring ring_;
  std::deque<std::uint64_t> sent_;
  std::uint64_t next_ = 1;
};

/// Sends 0 … count - 1 by a mix of the three ways; `yields` when the ring is full.
void produce_all(Ring& ring, std::uint64_t count) {
  for (std::uint64_t next = 0; next < count;) {
    const std::uint64_t before = next;
    if (ring.push(next)) ++next;
    for (int i = 0; i < 10 && next < count && ring.push_lazy(next); ++i) ++next;
    const auto slots = ring.claim(std::min<std::uint64_t>(count - next, 16));
    for (auto& slot : slots) slot = next++;
    ring.commit(slots.size());
    if (next == before) std::this_thread::yield();
  }
  ring.publish();
}

/// One turn of a consumer that expects `expected`, `expected + 1`, …; returns whether all were right.
bool consume_some(Ring& ring, std::uint64_t& expected) {
  bool right = true;
  std::uint64_t item = 0;
  if (ring.pop(item)) right &= item == expected++;
  for (int i = 0; i < 10 && ring.pop_lazy(item); ++i) right &= item == expected++;
  const auto items = ring.peek(16);
  for (const auto& seen : items) right &= seen == expected++;
  ring.release(items.size());
  ring.flush();
  return right;
}

}  // namespace

TEST_CASE("random operations give what a deque gives, at every small capacity") {
  for (std::size_t capacity = 1; capacity <= 8; ++capacity) {
    CAPTURE(capacity);
    std::mt19937_64 random(capacity);
    Model model(capacity);
    for (int i = 0; i < 20'000; ++i) random() % 2 == 0 ? model.produce(random) : model.consume(random);
  }
}

TEST_CASE("a capacity is rounded up to a power of two and slots start on a cache line") {
  CHECK(Ring(1).capacity() == 1);
  CHECK(Ring(5).capacity() == 8);
  Ring ring(4096);
  CHECK(ring.capacity() == 4096);
  CHECK(reinterpret_cast<std::uintptr_t>(ring.claim(1).data()) % 64 == 0);
}

TEST_CASE("a full ring refuses and an empty one gives nothing") {
  Ring ring(4);
  std::uint64_t item = 77;
  CHECK_FALSE(ring.pop(item));
  CHECK(ring.peek(4).empty());
  for (std::uint64_t i = 0; i < 4; ++i) CHECK(ring.push(i));
  CHECK_FALSE(ring.push(4));
  CHECK(ring.claim(1).empty());
  CHECK(item == 77);
  for (std::uint64_t i = 0; i < 4; ++i) {
    REQUIRE(ring.pop(item));
    CHECK(item == i);
  }
  CHECK(ring.is_empty());
}

TEST_CASE("a claim stops at the end of the array and goes on at its beginning") {
  Ring ring(8);
  std::uint64_t item = 0;
  for (std::uint64_t i = 0; i < 6; ++i) CHECK((ring.push(i) && ring.pop(item)));
  const auto first = ring.claim(8);
  REQUIRE(first.size() == 2);
  first[0] = 100, first[1] = 101;
  ring.commit(2);
  const auto second = ring.claim(8);
  REQUIRE(second.size() == 6);
  CHECK(second.data() + 6 == first.data());
  CHECK(ring.peek(8).size() == 2);
}

TEST_CASE("lazy pushes stay unseen until published, lazy pops keep their slots until flushed") {
  Ring ring(4);
  std::uint64_t item = 0;
  CHECK(ring.push_lazy(1));
  CHECK(ring.is_empty());
  ring.publish();
  CHECK(ring.pop_lazy(item));
  CHECK(item == 1);
  for (std::uint64_t i = 0; i < 3; ++i) CHECK(ring.push(i));
  CHECK_FALSE(ring.push(3));
  ring.flush();
  CHECK(ring.push(3));
}

TEST_CASE("a lazy side publishes by itself at its limit and at the full or empty edge, so neither side can starve") {
  Ring small(4);
  std::uint64_t item = 0;
  for (std::uint64_t i = 0; i < 4; ++i) CHECK(small.push_lazy(i));
  CHECK(small.is_empty());
  CHECK_FALSE(small.push_lazy(4));
  for (std::uint64_t i = 0; i < 4; ++i) CHECK(small.pop_lazy(item));
  CHECK_FALSE(small.pop_lazy(item));
  CHECK(small.claim(4).size() == 4);

  Ring large(256);
  for (std::uint64_t i = 0; i < Ring::lazy_items; ++i) {
    CHECK(large.is_empty());
    CHECK(large.push_lazy(i));
  }
  CHECK_FALSE(large.is_empty());
}

TEST_CASE("a million items cross between two threads in order") {
  constexpr std::uint64_t count = 1'000'000;
  Ring ring(8192);  // few hand-overs, each of which may wait for a time slice
  std::thread producer([&ring] { produce_all(ring, count); });
  std::uint64_t expected = 0;
  bool right = true;
  while (expected < count) {
    const std::uint64_t before = expected;
    right &= consume_some(ring, expected);
    if (expected == before) std::this_thread::yield();
  }
  producer.join();
  CHECK(right);
  CHECK(ring.is_empty());
}

TEST_CASE("eight producers with a ring each are all heard in their own order") {
  constexpr std::uint64_t count = 100'000;
  std::array<std::unique_ptr<Ring>, 8> rings;
  std::vector<std::thread> producers;
  for (auto& ring : rings) {
    ring = std::make_unique<Ring>(4096);
    producers.emplace_back([&ring] { produce_all(*ring, count); });
  }
  std::array<std::uint64_t, 8> expected{};
  bool right = true;
  for (std::uint64_t total = 0; total < 8 * count;) {
    const std::uint64_t before = total;
    total = 0;
    for (std::size_t i = 0; i < rings.size(); ++i) {
      right &= consume_some(*rings[i], expected[i]);
      total += expected[i];
    }
    if (total == before) std::this_thread::yield();
  }
  for (auto& producer : producers) producer.join();
  CHECK(right);
  for (std::size_t i = 0; i < rings.size(); ++i) CHECK(rings[i]->is_empty());
}
