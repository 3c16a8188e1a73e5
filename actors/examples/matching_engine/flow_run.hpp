// SPDX-License-Identifier: Apache-2.0
#pragma once

/// FlowRun: a book outside of any node, in an arena of its own, that is given an order flow message by message. The
/// same book as in the actor, so what it reports is what a node would; stamps are made up, a microsecond a message.
///
/// One thread.

#include <lockstep/testing/arena_fixture.hpp>

#include <cstdint>
#include <span>
#include <vector>

#include "book.hpp"
#include "order_flow.hpp"

namespace matching {

class FlowRun {
 public:
  explicit FlowRun(std::uint64_t seed) : flow_(seed) {}
  ~FlowRun() { arena_.use(); }
  FlowRun(const FlowRun&) = delete;
  FlowRun& operator=(const FlowRun&) = delete;

  /// What the next message led to; valid until the next call.
  std::span<const ExecutionReport> next();
  [[nodiscard]] const Book& book() const { return book_; }

 private:
  static constexpr std::uint64_t arena_bytes = std::uint64_t{16} << 20;  // a flow's book has some thousand orders

  lockstep::testing::ArenaFixture arena_{arena_bytes};
  OrderFlow flow_;
  Book book_;
  ReportList reports_;
  std::uint64_t messages_ = 0;
};

/// The first `count` reports of the flow of this seed.
[[nodiscard]] std::vector<ExecutionReport> execution_reports(std::uint64_t seed, std::size_t count);

}  // namespace matching
