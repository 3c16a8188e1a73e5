// SPDX-License-Identifier: Apache-2.0
#pragma once

/// What the rings carry in the bench, and how a consumer knows that it got all of it.

#include <cstdint>
#include <cstdio>
#include <cstdlib>

#include "runtime/ring/cache_line.hpp"

namespace lockstep::bench {

struct Word {
  std::uint64_t number;
  static Word make(std::uint64_t number) { return {number}; }
  [[nodiscard]] std::uint64_t first() const { return number; }
  [[nodiscard]] std::uint64_t last() const { return number; }
};
static_assert(sizeof(Word) == 8);

/// One cache line, aligned to one: the libraries whose slots would straddle two lines otherwise run 1.6 times faster
/// so.
struct alignas(cache_line_bytes) Line {
  std::uint64_t words[8];
  static Line make(std::uint64_t number) { return {{number, number, number, number, number, number, number, number}}; }
  [[nodiscard]] std::uint64_t first() const { return words[0]; }
  [[nodiscard]] std::uint64_t last() const { return words[7]; }
};
static_assert(sizeof(Line) == 64);

/// Takes the items of one sample, which are numbered from 0.
class Checker {
 public:
  template <class Item>
  void take(const Item& item) {
    wrong_ |= (item.first() ^ taken_) | (item.last() ^ taken_);
    sum_ += item.first();
    ++taken_;
  }

  /// Ends the program when an item was lost, doubled, torn or out of order.
  void expect(std::uint64_t items) const {
    if (wrong_ == 0 && taken_ == items && sum_ == items * (items - 1) / 2) return;
    std::fprintf(stderr, "bench_ring: a queue lost, doubled or reordered items\n");
    std::exit(1);
  }

 private:
  std::uint64_t taken_ = 0;
  std::uint64_t sum_ = 0;
  std::uint64_t wrong_ = 0;
};

}  // namespace lockstep::bench
