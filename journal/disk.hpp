// SPDX-License-Identifier: Apache-2.0
#pragma once

/// Disk: every touch of storage, as an interface with a real side (runtime/io: io_uring, or threads under epoll) and a
/// simulated one (tests), so that faults can be put beneath the same code. Two kinds of call:
///
/// * blocking ones, for start, stop, recovery and tools; they return an Error that names operation, file and errno;
/// * submitted ones, for the write path: they return at once and complete through poll(), in any order, as
///   {token, result}. The bytes handed to submit_write stay valid and unchanged until its completion.
///
/// One thread owns a Disk. Nothing here retries: a failed write or sync is final for its caller.

#include <sys/uio.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/error.hpp"

namespace lockstep {

/// An open file of a Disk.
enum class FileId : std::int32_t { none = -1 };

enum class OpenMode {
  read,           ///< an existing file, through the page cache
  write_direct,   ///< an existing file, read and write past the page cache: offset, length, address multiples of 4096
  create_direct,  ///< a new file, which must not exist yet; read and write past the page cache
  append,         ///< created if missing; written at its end through the page cache
};

struct DiskCompletion {
  std::uint64_t token = 0;
  /// Bytes written, 0 for a sync or a background task that succeeded, or -errno.
  std::int64_t result = 0;
};

class Disk {
 public:
  virtual ~Disk() = default;

  // Blocking.
  [[nodiscard]] virtual Result<FileId> open(const std::string& path, OpenMode mode) = 0;
  /// With submitted operations under way on the file, it is closed when the last of them is done.
  virtual void close(FileId file) = 0;
  [[nodiscard]] virtual Result<std::uint64_t> size(FileId file) = 0;
  /// Reads up to `into.size()` bytes; fewer only at the end of the file.
  [[nodiscard]] virtual Result<std::size_t> read(FileId file, std::uint64_t offset, std::span<std::byte> into) = 0;
  /// Writes all of `bytes` or fails.
  [[nodiscard]] virtual Result<void> write(FileId file, std::uint64_t offset, std::span<const std::byte> bytes) = 0;
  /// fdatasync.
  [[nodiscard]] virtual Result<void> sync(FileId file) = 0;
  [[nodiscard]] virtual Result<void> sync_directory(const std::string& path) = 0;
  /// Reserves and zero-fills [0, bytes): written zeros, since unwritten extents make a later O_DIRECT write undurable.
  [[nodiscard]] virtual Result<void> zero_fill(FileId file, std::uint64_t bytes) = 0;
  [[nodiscard]] virtual Result<void> truncate(FileId file, std::uint64_t bytes) = 0;
  [[nodiscard]] virtual Result<void> rename(const std::string& from, const std::string& to) = 0;
  [[nodiscard]] virtual Result<void> remove(const std::string& path) = 0;
  /// Creates a directory and its parents; one that exists is a success.
  [[nodiscard]] virtual Result<void> make_directory(const std::string& path) = 0;
  /// Names in a directory, sorted, without "." and "..".
  [[nodiscard]] virtual Result<std::vector<std::string>> list(const std::string& path) = 0;
  /// The file, of exactly `bytes`, as memory that other processes share and that outlives this one, though not the
  /// machine: for what a process wants to leave behind when it dies. One that is missing, or of another size, becomes
  /// zeroes.
  [[nodiscard]] virtual Result<std::shared_ptr<std::byte[]>> map_shared(const std::string& path, std::size_t bytes) = 0;
  /// Exclusive advisory lock (flock) on an open file; ErrorCode::busy when another process or descriptor holds it.
  [[nodiscard]] virtual Result<void> lock(FileId file) = 0;
  /// Opens a directory so that it can be locked.
  [[nodiscard]] virtual Result<FileId> open_directory(const std::string& path) = 0;

  // Submitted.
  /// Writes the pieces (at most 1024) one behind the other at `offset`. Completes with the bytes written: fewer than
  /// asked is a failure of the caller's write.
  virtual void submit_write(FileId file, std::uint64_t offset, std::span<const iovec> pieces, std::uint64_t token) = 0;
  /// fdatasync that covers every write completed before this call.
  virtual void submit_sync(FileId file, std::uint64_t token) = 0;
  /// Runs blocking work off this thread (making a spare segment takes some 40 ms); the Disk it is handed has blocking
  /// calls only. Completes with 0, or with a -errno after its ErrorCode; the Error's text is the work's own to keep.
  virtual void submit_background(std::function<Result<void>(Disk&)> work, std::uint64_t token) = 0;
  /// Completions since the last call; the span is valid until the next call.
  [[nodiscard]] virtual std::span<const DiskCompletion> poll() = 0;
};

}  // namespace lockstep
