// SPDX-License-Identifier: Apache-2.0
#pragma once

/// Trail: where a history passed since what is known committed: so that a TRUNCATE, which takes back batches that lost
/// an election, can be held against what it takes back, and never reaches what was committed. One thread.

#include <cstdint>
#include <deque>
#include <optional>
#include <string_view>

#include "journal/batch.hpp"

namespace lockstep {

class Trail {
 public:
  void start(const HistoryPosition& before);
  /// Passes a batch that ends at `position`, stored when `commit_index` was known committed.
  void pass(const HistoryPosition& position, std::uint64_t commit_index);
  /// What speaks against going back to `target`; nothing when it is a place the history passed.
  [[nodiscard]] std::optional<std::string_view> defect_of(const HistoryPosition& target) const;
  void go_back(const HistoryPosition& target);

 private:
  std::deque<HistoryPosition> positions_;  // ascending; the first is committed, or where the history begins
};

}  // namespace lockstep
