// SPDX-License-Identifier: Apache-2.0
#pragma once

/// OrderFlow: an endless stream of messages to one book, made up, and the same for everyone who has the seed. Message n
/// is a function of seed and n alone, so that threads may make them in any order.
///
/// It is shaped like the flow that LOBSTER files show: of 40 messages 17 enter orders, 17 cancel, 2 reduce, 4 want to
/// trade at once. Prices lie around a middle that wanders; most orders lie close to it and live briefly, some far off
/// and long. Each order is cancelled in the end; by then some have traded, and the cancel is too late, as on an
/// exchange. And the first messages also cancel orders of before the stream's beginning.
///
/// Pure functions; any thread.

#include <cstdint>

#include "book_message.hpp"

namespace matching {

class OrderFlow {
 public:
  /// Prices are multiples of it: a cent, where a tick is a ten-thousandth of a dollar.
  static constexpr std::int64_t price_step = 100;

  explicit OrderFlow(std::uint64_t seed) : seed_(seed) {}

  [[nodiscard]] BookMessage at(std::uint64_t index) const;
  /// What prices lie around at message `index`, in ticks.
  [[nodiscard]] std::int64_t middle_at(std::uint64_t index) const;

 private:
  [[nodiscard]] std::uint64_t dice(std::uint64_t stream, std::uint64_t at) const;
  [[nodiscard]] OrderKey key_of(std::uint64_t number) const;
  [[nodiscard]] Entry lasting(std::uint64_t block, std::uint64_t slot) const;
  [[nodiscard]] Entry impatient(std::uint64_t block, std::uint64_t slot) const;

  std::uint64_t seed_;
};

}  // namespace matching
