// SPDX-License-Identifier: Apache-2.0
#pragma once

/// DiskFaults: which operation of a MemoryDisk meets which fault, put there by number, so that a run can be repeated.
/// Counts operations that change something, and reads apart from them. It only plans; what a fault does to a file is
/// the disk's business. One thread.

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace lockstep {

enum class DiskFault {
  error,             ///< the operation fails with an errno; a write leaves some of its pieces, a sync loses some
  short_write,       ///< a submitted write completes with half its bytes; any other operation fails
  power_cut,         ///< this and everything afterwards fails; the medium holds what after_power_cut() draws
  lost_write,        ///< the next write from here on succeeds, and nothing of it ever reaches the medium
  misdirected_write  ///< the next write from here on succeeds, and lands on other sectors than those meant
};
/// "lost write": for the report of a run.
[[nodiscard]] const char* name_of(DiskFault fault);

class DiskFaults {
 public:
  struct Planned {
    DiskFault fault = DiskFault::error;
    int error = 0;  ///< errno
  };
  enum class Operation { write, other };

  /// Puts a fault at the n-th operation from now on (1 is the next one).
  void at(std::uint64_t nth, Planned planned);
  /// Makes the n-th read from now on fail with EIO, once.
  void at_read(std::uint64_t nth) { read_faults_.insert(reads_ + nth); }
  /// Reads that touch this byte fail with EIO, until mend().
  void make_unreadable(const std::string& path, std::uint64_t offset) { unreadable_.insert({path, offset}); }
  void mend() { unreadable_.clear(); }

  /// Counts an operation; the fault it meets, if any. After a power cut each meets that.
  [[nodiscard]] std::optional<Planned> next(Operation operation);
  /// Counts a read; true when it fails.
  [[nodiscard]] bool read_fails(const std::string& path, std::uint64_t offset, std::size_t bytes);

  [[nodiscard]] bool dead() const { return dead_; }
  [[nodiscard]] std::uint64_t operations() const { return operations_; }
  /// The faults met so far, a power cut once.
  [[nodiscard]] const std::vector<DiskFault>& met() const { return met_; }

 private:
  std::multimap<std::uint64_t, Planned> planned_;
  std::uint64_t operations_ = 0;
  std::vector<DiskFault> met_;
  bool dead_ = false;
  std::uint64_t reads_ = 0;
  std::set<std::uint64_t> read_faults_;
  std::set<std::pair<std::string, std::uint64_t>> unreadable_;
};

}  // namespace lockstep
