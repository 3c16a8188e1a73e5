// SPDX-License-Identifier: Apache-2.0
#include "journal/testing/disk_faults.hpp"

#include <algorithm>
#include <cerrno>

namespace lockstep {

const char* name_of(DiskFault fault) {
  switch (fault) {
    case DiskFault::error:
      return "error";
    case DiskFault::short_write:
      return "short write";
    case DiskFault::power_cut:
      return "power cut";
    case DiskFault::lost_write:
      return "lost write";
    case DiskFault::misdirected_write:
      return "misdirected write";
  }
  return "unknown";
}

void DiskFaults::at(std::uint64_t nth, Planned planned) {
  if (planned.error == 0) planned.error = EIO;
  planned_.emplace(operations_ + nth, planned);
}

std::optional<DiskFaults::Planned> DiskFaults::next(Operation operation) {
  constexpr Planned cut{DiskFault::power_cut, EIO};
  if (dead_) return cut;
  ++operations_;
  for (auto due = planned_.begin(); due != planned_.end() && due->first <= operations_; ++due) {
    const Planned planned = due->second;
    const bool of_writes = planned.fault == DiskFault::lost_write || planned.fault == DiskFault::misdirected_write;
    if (of_writes && operation != Operation::write) continue;
    planned_.erase(due);
    met_.push_back(planned.fault);
    if (planned.fault != DiskFault::power_cut) return planned;
    dead_ = true;
    return cut;
  }
  return std::nullopt;
}

bool DiskFaults::read_fails(const std::string& path, std::uint64_t offset, std::size_t bytes) {
  if (read_faults_.erase(++reads_) != 0) return true;
  return std::ranges::any_of(unreadable_, [&](const auto& bad) {
    return bad.first == path && bad.second >= offset && bad.second < offset + bytes;
  });
}

}  // namespace lockstep
