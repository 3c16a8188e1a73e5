// SPDX-License-Identifier: Apache-2.0
#include "runtime/ring/byte_ring.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <deque>
#include <memory>
#include <random>
#include <thread>
#include <vector>

using lockstep::ByteRing;

namespace {

std::byte content(std::uint64_t number, std::size_t offset) {
  return static_cast<std::byte>((number * 0x9e3779b97f4a7c15U >> 56) + offset);
}

void fill(std::span<std::byte> frame, std::uint64_t number) {
  for (std::size_t i = 0; i < frame.size(); ++i) frame[i] = content(number, i);
}

bool holds(std::span<const std::byte> frame, std::uint64_t number, std::size_t bytes) {
  if (frame.size() != bytes || reinterpret_cast<std::uintptr_t>(frame.data()) % 16 != 0) return false;
  for (std::size_t i = 0; i < bytes; ++i) {
    if (frame[i] != content(number, i)) return false;
  }
  return true;
}

/// The length of frame `number`, which both sides can work out.
std::size_t length_of(std::uint64_t number, std::size_t max_bytes) {
  return 1 + (number * 0xd1342543de82ef95U >> 33) % max_bytes;
}

/// Of frames that cross between threads. Their rings hold hundreds: where every hand-over waits for a time slice of
/// whatever else the machine runs, a million frames must not take a hundred thousand hand-overs.
constexpr std::size_t crossing_bytes = 240;

/// Sends frames 0 … count - 1, publishing after a few each.
void produce_all(ByteRing& ring, std::uint64_t count) {
  for (std::uint64_t next = 0; next < count;) {
    for (int i = 0; i < 8 && next < count; ++i) {
      const auto frame = ring.claim(length_of(next, crossing_bytes));
      if (frame.empty()) {
        ring.publish();
        std::this_thread::yield();
        break;
      }
      fill(frame, next++);
    }
    ring.publish();
  }
}

bool consume_some(ByteRing& ring, std::uint64_t& expected) {
  bool right = true;
  for (int i = 0; i < 8; ++i) {
    const auto frame = ring.peek();
    if (frame.empty()) break;
    right &= holds(frame, expected, length_of(expected, crossing_bytes));
    ++expected;
    ring.release();
  }
  ring.flush();
  return right;
}

}  // namespace

TEST_CASE("random frames come out of tiny rings as out of a deque") {
  for (std::size_t capacity = 32; capacity <= 1024; capacity *= 2) {
    CAPTURE(capacity);
    std::mt19937_64 random(capacity);
    ByteRing ring(capacity);
    std::deque<std::uint64_t> claimed;    // not yet published
    std::deque<std::uint64_t> published;  // not yet released
    std::uint64_t next = 0;
    for (int i = 0; i < 30'000; ++i) {
      switch (random() % 6) {
        case 0:
        case 1: {
          const auto frame = ring.claim(length_of(next, ring.max_frame_bytes()));
          if (frame.empty()) break;
          fill(frame, next);
          claimed.push_back(next++);
          break;
        }
        case 2:
          ring.publish();
          published.insert(published.end(), claimed.begin(), claimed.end());
          claimed.clear();
          break;
        case 3:
        case 4: {
          CHECK(ring.is_empty() == published.empty());
          const auto frame = ring.peek();
          REQUIRE(frame.empty() == published.empty());
          if (frame.empty()) break;
          REQUIRE(holds(frame, published.front(), length_of(published.front(), ring.max_frame_bytes())));
          CHECK(ring.peek().data() == frame.data());
          published.pop_front();
          ring.release();
          break;
        }
        default:
          ring.flush();
      }
    }
    CHECK(next > 1000);
  }
}

TEST_CASE("the longest frame fits an empty ring wherever the last one ended, a longer one never") {
  for (std::size_t capacity = 32; capacity <= 4096; capacity *= 2) {
    ByteRing ring(capacity);
    CHECK(ring.max_frame_bytes() == capacity / 2 - 8);
    CHECK(ring.claim(ring.max_frame_bytes() + 1).empty());
    for (std::uint64_t i = 0; i < 200; ++i) {
      CAPTURE(capacity);
      CAPTURE(i);
      const std::size_t bytes = i % 2 == 0 ? length_of(i, ring.max_frame_bytes()) : ring.max_frame_bytes();
      const auto frame = ring.claim(bytes);
      REQUIRE(frame.size() == bytes);
      fill(frame, i);
      ring.publish();
      REQUIRE(holds(ring.peek(), i, bytes));
      ring.release();
      ring.flush();
    }
    CHECK(ring.is_empty());
  }
}

// aeron_spsc_rb (1.47.3) published the padding here and handed out the record at the start of the buffer, on top of one
// that had not been read.
TEST_CASE("a frame that needs padding and finds no room at the start is refused and changes nothing") {
  ByteRing ring(256);
  const auto send = [&ring](std::size_t bytes, std::uint64_t number) {
    const auto frame = ring.claim(bytes);
    if (frame.empty()) return false;
    fill(frame, number);
    ring.publish();
    return true;
  };
  REQUIRE(send(72, 0));  // [0, 80)
  REQUIRE(send(72, 1));  // [80, 160)
  REQUIRE(send(40, 2));  // [160, 208); 48 bytes are left at the end
  REQUIRE(holds(ring.peek(), 0, 72));
  ring.release();  // its room is not given back yet
  CHECK_FALSE(send(72, 3));
  CHECK_FALSE(send(72, 3));
  REQUIRE(holds(ring.peek(), 1, 72));
  ring.flush();  // room is now 48 at the end and 80 at the start
  CHECK_FALSE(send(80, 3));
  REQUIRE(send(72, 3));
  CHECK_FALSE(send(1, 4));
  for (const auto& [number, bytes] : {std::pair<std::uint64_t, std::size_t>{1, 72}, {2, 40}, {3, 72}}) {
    CHECK(holds(ring.peek(), number, bytes));
    ring.release();
  }
  CHECK(ring.peek().empty());
  CHECK(send(4, 5));
}

TEST_CASE("claimed frames stay unseen until published, all at once") {
  ByteRing ring(1024);
  for (std::uint64_t i = 0; i < 3; ++i) fill(ring.claim(20), i);
  CHECK(ring.is_empty());
  CHECK(ring.peek().empty());
  ring.publish();
  for (std::uint64_t i = 0; i < 3; ++i) {
    CHECK(holds(ring.peek(), i, 20));
    ring.release();
  }
  CHECK(ring.peek().empty());
}

TEST_CASE("released room comes back at a flush, or at the empty peek that ends a turn") {
  ByteRing ring(64);
  fill(ring.claim(24), 0);
  fill(ring.claim(24), 1);
  ring.publish();
  CHECK_FALSE(ring.peek().empty());
  ring.release();
  CHECK(ring.claim(24).empty());
  ring.flush();
  CHECK_FALSE(ring.claim(24).empty());
  CHECK(ring.claim(24).empty());
  CHECK_FALSE(ring.peek().empty());
  ring.release();
  CHECK(ring.peek().empty());
  CHECK_FALSE(ring.claim(24).empty());
}

TEST_CASE("a million frames cross between two threads whole and in order") {
  constexpr std::uint64_t count = 1'000'000;
  ByteRing ring(64 << 10);
  std::thread producer([&ring] { produce_all(ring, count); });
  std::uint64_t expected = 0;
  bool right = true;
  while (right && expected < count) {
    const std::uint64_t before = expected;
    right &= consume_some(ring, expected);
    if (expected == before) std::this_thread::yield();
  }
  REQUIRE(right);
  producer.join();
  CHECK(ring.is_empty());
}

TEST_CASE("eight producers with a byte ring each are all heard in their own order") {
  constexpr std::uint64_t count = 20'000;
  std::array<std::unique_ptr<ByteRing>, 8> rings;
  std::vector<std::thread> producers;
  for (auto& ring : rings) {
    ring = std::make_unique<ByteRing>(16 << 10);
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
}
