// SPDX-License-Identifier: Apache-2.0
#pragma once

/// EpollDisk: Disk for hosts that forbid io_uring. Submitted writes and syncs run on two helper threads, background
/// work on a third. One thread owns it; DiskThreads hands results back.

#include <vector>

#include "journal/posix_files.hpp"
#include "runtime/io/disk_operations.hpp"
#include "runtime/io/disk_threads.hpp"

namespace lockstep::io {

class EpollDisk final : public PosixFiles {
 public:
  /// `notify` ends the owner's sleep; it is called on a helper thread after each completion.
  explicit EpollDisk(const std::function<void()>& notify);

  void close(FileId file) override { operations_.close(file); }
  void submit_write(FileId file, std::uint64_t offset, std::span<const iovec> pieces, std::uint64_t token) override;
  void submit_sync(FileId file, std::uint64_t token) override;
  void submit_background(std::function<Result<void>(Disk&)> work, std::uint64_t token) override;
  std::span<const DiskCompletion> poll() override;

  // For the reactor.
  /// Collects what the helper threads have finished; returns how many completions wait for poll().
  std::size_t gather();

 private:
  DiskOperations operations_;
  std::vector<DiskCompletion> finished_;  ///< of the writers; their tokens are slots
  std::vector<DiskCompletion> gathered_;
  std::vector<DiskCompletion> handed_out_;
  DiskThreads writers_;
  DiskThreads background_;
};

}  // namespace lockstep::io
