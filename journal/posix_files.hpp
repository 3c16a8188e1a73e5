// SPDX-License-Identifier: Apache-2.0
#pragma once

/// PosixFiles: the blocking half of Disk, by plain system calls. A FileId is the descriptor itself and nothing else is
/// kept, so these calls may run on any thread; two threads must not use one file at a time. The submitted half, and
/// closing, which has to wait for it, are left to the class that derives from it.

#include "journal/disk.hpp"

namespace lockstep {

class PosixFiles : public Disk {
 public:
  Result<FileId> open(const std::string& path, OpenMode mode) override;
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
  Result<std::shared_ptr<std::byte[]>> map_shared(const std::string& path, std::size_t bytes) override;
  Result<void> lock(FileId file) override;
  Result<FileId> open_directory(const std::string& path) override;
};

}  // namespace lockstep
