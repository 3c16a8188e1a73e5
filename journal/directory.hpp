// SPDX-License-Identifier: Apache-2.0
#pragma once

/// The files of a journal's directory: names of segments, and which ones there are. A name is only a hint; the header
/// inside says what a file is. Names this program did not give are left alone.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.hpp"
#include "journal/disk.hpp"

namespace lockstep {

/// "seg-000000000000002a.jnl"
[[nodiscard]] std::string segment_name(std::uint64_t segment_id);
[[nodiscard]] std::optional<std::uint64_t> segment_id_of(std::string_view name);

struct JournalFiles {
  std::vector<std::uint64_t> segments;  ///< ids, ascending
  std::vector<std::string> temporary;   ///< names of what a start or a roll left half made
  bool has_hard_state = false;
  bool has_snapshots = false;

  /// Something is there, but not what is written last of a new directory.
  [[nodiscard]] bool half_made() const { return !has_hard_state && (has_snapshots || !segments.empty()); }
};
[[nodiscard]] Result<JournalFiles> list_journal(Disk& disk, const std::string& directory);

/// Refuses a directory that is missing, that is none, or that holds no journal, and says what to name instead: for
/// those who are told where one is.
[[nodiscard]] Result<void> require_journal(Disk& disk, const std::string& directory);
/// Makes a directory, unless it is there, so that a crash does not lose it.
[[nodiscard]] Result<void> make_data_directory(Disk& disk, const std::string& directory);
/// The directories on the way to a new data directory that are made for it: noted before, and removed again at the end
/// of scope, as far as they are empty, unless what was to be in them is kept.
class DirectoriesMade {
 public:
  DirectoriesMade(Disk& disk, const std::string& directory);
  DirectoriesMade(const DirectoriesMade&) = delete;
  DirectoriesMade& operator=(const DirectoriesMade&) = delete;
  ~DirectoriesMade();
  void keep() { missing_.clear(); }
  /// Whether there was nothing in it, or no directory: then all that is in it now was made since.
  [[nodiscard]] bool was_empty() const { return was_empty_; }

 private:
  Disk& disk_;
  std::vector<std::string> missing_;  ///< deepest first
  bool was_empty_ = false;
};
/// Takes back what was made in a directory that was empty, so that a crash on the way leaves no hard state without the
/// rest. What cannot be removed stays.
void clear_data_directory(Disk& disk, const std::string& directory);

}  // namespace lockstep
