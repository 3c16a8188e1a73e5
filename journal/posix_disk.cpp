// SPDX-License-Identifier: Apache-2.0
#include "journal/posix_disk.hpp"

#include <sys/uio.h>
#include <unistd.h>

#include <cerrno>

#include "base/system_error.hpp"

namespace lockstep {
namespace {

int descriptor_of(FileId file) {
  return static_cast<int>(file);
}

}  // namespace

PosixDisk::~PosixDisk() {
  for (const FileId file : open_) ::close(descriptor_of(file));
}

Result<FileId> PosixDisk::remember(Result<FileId> opened) {
  const std::lock_guard guard(mutex_);
  if (opened) open_.insert(*opened);
  return opened;
}

Result<FileId> PosixDisk::open(const std::string& path, OpenMode mode) {
  return remember(PosixFiles::open(path, mode));
}

Result<FileId> PosixDisk::open_directory(const std::string& path) {
  return remember(PosixFiles::open_directory(path));
}

void PosixDisk::close(FileId file) {
  {
    const std::lock_guard guard(mutex_);
    open_.erase(file);
  }
  ::close(descriptor_of(file));
}

void PosixDisk::submit_write(FileId file, std::uint64_t offset, std::span<const iovec> pieces, std::uint64_t token) {
  ssize_t put = -1;
  do {
    put = ::pwritev(descriptor_of(file), pieces.data(), static_cast<int>(pieces.size()), static_cast<off_t>(offset));
  } while (put < 0 && errno == EINTR);
  done_.push_back({token, put < 0 ? -errno : put});
}

void PosixDisk::submit_sync(FileId file, std::uint64_t token) {
  done_.push_back({token, ::fdatasync(descriptor_of(file)) == 0 ? 0 : -errno});
}

void PosixDisk::submit_background(std::function<Result<void>(Disk&)> work, std::uint64_t token) {
  const Result<void> done = work(*this);
  done_.push_back({token, done ? 0 : -errno_of(done.error().code)});
}

std::span<const DiskCompletion> PosixDisk::poll() {
  reported_.swap(done_);
  done_.clear();
  return reported_;
}

}  // namespace lockstep
