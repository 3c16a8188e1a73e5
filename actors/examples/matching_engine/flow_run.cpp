// SPDX-License-Identifier: Apache-2.0
#include "flow_run.hpp"

#include <algorithm>

namespace matching {

std::span<const ExecutionReport> FlowRun::next() {
  constexpr std::uint64_t symbol = 1;
  constexpr std::int64_t opening_ns = 34'200'000'000'000;  // 9:30, as in LOBSTER's files
  constexpr std::int64_t message_ns = 1'000;
  arena_.use();
  reports_.clear();
  const Moment moment{symbol, messages_ + 1, opening_ns + static_cast<std::int64_t>(messages_) * message_ns};
  apply(flow_.at(messages_++), moment, book_, reports_);
  arena_.commit();
  return reports_.view();
}

std::vector<ExecutionReport> execution_reports(std::uint64_t seed, std::size_t count) {
  std::vector<ExecutionReport> all;
  all.reserve(count);
  FlowRun run(seed);
  while (all.size() < count) {
    const auto reports = run.next();
    all.insert(all.end(), reports.begin(),
               reports.begin() + static_cast<std::ptrdiff_t>(std::min(reports.size(), count - all.size())));
  }
  return all;
}

}  // namespace matching
