// SPDX-License-Identifier: Apache-2.0
#pragma once

/// DirectoryLock: the exclusive hold of a process on a data directory: flock on the directory itself, so that no
/// deleted lock file undoes it. One thread, blocking.

#include <string>

#include "base/error.hpp"
#include "journal/disk.hpp"

namespace lockstep {

class DirectoryLock {
 public:
  DirectoryLock() = default;
  DirectoryLock(DirectoryLock&& other) noexcept;
  DirectoryLock& operator=(DirectoryLock&& other) noexcept;
  ~DirectoryLock();

  /// Waits a moment for a holder that is just ending, then refuses.
  [[nodiscard]] static Result<DirectoryLock> take(Disk& disk, const std::string& directory);

 private:
  DirectoryLock(Disk& disk, FileId file) : disk_(&disk), file_(file) {}
  Disk* disk_ = nullptr;
  FileId file_ = FileId::none;
};

/// Locks an open file; the kernel may hold a killed process' lock for a moment, until its last write is done.
[[nodiscard]] Result<void> lock_with_patience(Disk& disk, FileId file, const std::string& when_busy);

/// What to say when another process holds `directory`.
[[nodiscard]] std::string held_by_another(const std::string& directory);

}  // namespace lockstep
