// SPDX-License-Identifier: Apache-2.0
#pragma once

/// PosixDisk: Disk by plain system calls, for tools and tests and as the blocking half of an asynchronous Disk. What is
/// submitted is executed at once and reported by the next poll(); nothing overlaps, so a node on it is slow, not wrong.
///
/// Files opened `*_direct` go past the page cache (O_DIRECT), or through it on a file system that cannot do so. The
/// submitted calls and poll() belong to one thread; the blocking calls may come from any.

#include <map>
#include <mutex>

#include "journal/disk.hpp"

namespace lockstep {

class PosixDisk : public Disk {
 public:
  PosixDisk() = default;
  PosixDisk(const PosixDisk&) = delete;
  PosixDisk& operator=(const PosixDisk&) = delete;
  ~PosixDisk() override;

  Result<FileId> open(const std::string& path, OpenMode mode) override;
  void close(FileId file) override;
  Result<std::uint64_t> size(FileId file) override;
  Result<std::size_t> read(FileId file, std::uint64_t offset, std::span<std::byte> into) override;
  Result<void> write(FileId file, std::uint64_t offset, std::span<const std::byte> bytes) override;
  Result<void> sync(FileId file) override;
  Result<void> sync_directory(const std::string& path) override;
  Result<void> zero_fill(FileId file, std::uint64_t bytes) override;
  Result<void> truncate(FileId file, std::uint64_t bytes) override;
  Result<void> rename(const std::string& from, const std::string& to) override;
  Result<void> remove(const std::string& path) override;
  Result<void> make_directory(const std::string& path) override;
  Result<std::vector<std::string>> list(const std::string& path) override;
  Result<void> lock(FileId file) override;
  Result<FileId> open_directory(const std::string& path) override;

  void submit_write(FileId file, std::uint64_t offset, std::span<const iovec> pieces, std::uint64_t token) override;
  void submit_sync(FileId file, std::uint64_t token) override;
  void submit_background(std::function<Result<void>(Disk&)> work, std::uint64_t token) override;
  std::span<const DiskCompletion> poll() override;

 protected:
  /// The path a file was opened by, for messages.
  [[nodiscard]] std::string path_of(FileId file);

 private:
  Result<FileId> remember(int descriptor, const std::string& path);
  Result<void> fail_on(FileId file, const std::string& operation, int error);

  std::mutex mutex_;  // guards paths_: blocking calls may come from a background thread
  std::map<int, std::string> paths_;
  std::vector<DiskCompletion> done_;
  std::vector<DiskCompletion> reported_;
};

/// The Error of a failed system call: "cannot OPERATION OBJECT: text (errno n)". ENOSPC and EDQUOT become
/// ErrorCode::full, EWOULDBLOCK becomes busy, all else io.
[[nodiscard]] Error system_error(const std::string& operation, const std::string& object, int error);

/// The value a failed background task reports in DiskCompletion::result.
[[nodiscard]] std::int64_t completion_result(const Result<void>& result);

}  // namespace lockstep
