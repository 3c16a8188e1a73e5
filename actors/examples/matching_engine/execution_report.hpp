// SPDX-License-Identifier: Apache-2.0
#pragma once

/// ExecutionReport: one thing that happened in a book, in 128 bytes without a gap, so that a report is the same record
/// in an answer, in a log and on a client's disk. The schema has it as a struct; here is what its bytes are.
/// Little-endian.
///
///       0        8      16         24       32        40      48      56         64          72         80
///      +--------+------+----------+--------+---------+-------+-------+----------+-----------+----------+----
///      | number | seq  | time, ns | symbol | account | order | price | quantity | remaining | executed |
///      +--------+------+----------+--------+---------+-------+-------+----------+-----------+----------+----
///      | resting account | resting order | resting remaining | best bid | best ask | event side kind reason | zero |
///      +-----------------+---------------+-------------------+----------+----------+------------------------+------+
///       80                88              96                  104        112        120 121 122 123          124   128

#include <cstddef>
#include <cstdint>
#include <new>
#include <span>
#include <type_traits>

#include "base/assert.hpp"
#include "matching_engine_generated.h"

namespace matching {

static_assert(sizeof(ExecutionReport) == 128 && alignof(ExecutionReport) == 8);
static_assert(std::is_trivially_copyable_v<ExecutionReport>);
static_assert(std::has_unique_object_representations_v<ExecutionReport>);

/// One incoming order trades with so many resting ones and no more: so its handler's time and its answer have a bound.
inline constexpr std::uint32_t most_trades = 500;

/// The reports of one message, in order, without asking the heap.
class ReportList {
 public:
  static constexpr std::size_t capacity = most_trades + 1;  ///< its trades, and what became of the rest

  void add(const ExecutionReport& report) {
    LOCKSTEP_ASSERT(size_ < capacity, "a message has at most one report beside its trades");
    ::new (static_cast<void*>(bytes_ + size_ * sizeof report)) ExecutionReport(report);
    ++size_;
  }
  void clear() { size_ = 0; }
  [[nodiscard]] std::span<const ExecutionReport> view() const {
    return {reinterpret_cast<const ExecutionReport*>(bytes_), size_};
  }

 private:
  std::size_t size_ = 0;
  alignas(ExecutionReport) std::byte bytes_[capacity * sizeof(ExecutionReport)];
};

}  // namespace matching
