// SPDX-License-Identifier: Apache-2.0
#include "journal/trail.hpp"

namespace lockstep {

void Trail::start(const HistoryPosition& before) {
  positions_.assign(1, before);
}

void Trail::pass(const HistoryPosition& position, std::uint64_t commit_index) {
  positions_.push_back(position);
  while (positions_.size() > 1 && positions_[1].index <= commit_index) positions_.pop_front();
}

std::optional<std::string_view> Trail::defect_of(const HistoryPosition& target) const {
  if (positions_.empty() || target.index < positions_.front().index) return "it takes back what was committed";
  if (target.index > positions_.back().index) return "it goes back to a batch that is not there";
  const HistoryPosition& passed = positions_[target.index - positions_.front().index];
  if (passed.index != target.index || passed.chain != target.chain || passed.seq != target.seq)
    return "it goes back to a batch of another history";
  return std::nullopt;
}

void Trail::go_back(const HistoryPosition& target) {
  while (positions_.size() > 1 && positions_.back().index > target.index) positions_.pop_back();
}

}  // namespace lockstep
