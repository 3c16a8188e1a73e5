// SPDX-License-Identifier: Apache-2.0
#pragma once

/// PosixDisk: Disk by plain system calls, for tools and tests. What is submitted is executed at once and reported by
/// the next poll(); nothing overlaps, so a node on it is slow, not wrong. Files still open are closed with it. The
/// submitted calls and poll() belong to one thread; the blocking calls may come from any.

#include <mutex>
#include <set>

#include "journal/posix_files.hpp"

namespace lockstep {

class PosixDisk final : public PosixFiles {
 public:
  PosixDisk() = default;
  PosixDisk(const PosixDisk&) = delete;
  PosixDisk& operator=(const PosixDisk&) = delete;
  ~PosixDisk() override;

  Result<FileId> open(const std::string& path, OpenMode mode) override;
  Result<FileId> open_directory(const std::string& path) override;
  void close(FileId file) override;

  void submit_write(FileId file, std::uint64_t offset, std::span<const iovec> pieces, std::uint64_t token) override;
  void submit_sync(FileId file, std::uint64_t token) override;
  void submit_background(std::function<Result<void>(Disk&)> work, std::uint64_t token) override;
  std::span<const DiskCompletion> poll() override;

 private:
  Result<FileId> remember(Result<FileId> opened);

  std::mutex mutex_;  // guards open_
  std::set<FileId> open_;
  std::vector<DiskCompletion> done_;
  std::vector<DiskCompletion> reported_;
};

}  // namespace lockstep
