// SPDX-License-Identifier: Apache-2.0
#pragma once

/// UringDisk: Disk by io_uring. Writes and syncs go through the reactor's ring; the kernel runs a sync in a thread of
/// its own, so a spinning owner does not delay it (a write with RWF_DSYNC it would).
/// Background work runs on one helper thread. Buffers are not registered: the measured gain is within noise, and
/// locked memory is scarce. One thread.

#include <vector>

#include "journal/posix_files.hpp"
#include "runtime/io/disk_operations.hpp"
#include "runtime/io/disk_threads.hpp"
#include "runtime/io/ring.hpp"

namespace lockstep::io {

class UringDisk final : public PosixFiles {
 public:
  /// `notify` ends the owner's sleep; it is called on the helper thread after each background completion.
  UringDisk(Ring& ring, const std::function<void()>& notify);

  void close(FileId file) override { operations_.close(file); }
  void submit_write(FileId file, std::uint64_t offset, std::span<const iovec> pieces, std::uint64_t token) override;
  void submit_sync(FileId file, std::uint64_t token) override;
  void submit_background(std::function<Result<void>(Disk&)> work, std::uint64_t token) override;
  std::span<const DiskCompletion> poll() override;

  // For the reactor.
  void on_completion(const RingCompletion& completion);
  /// Collects what the helper thread has finished; returns how many completions wait for poll().
  std::size_t gather();
  /// Writes and syncs the kernel still works on.
  [[nodiscard]] std::uint32_t in_flight() const { return operations_.in_flight(); }

 private:
  Ring& ring_;
  DiskOperations operations_;
  std::vector<DiskCompletion> gathered_;
  std::vector<DiskCompletion> handed_out_;
  DiskThreads background_;
};

}  // namespace lockstep::io
