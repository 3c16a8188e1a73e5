// SPDX-License-Identifier: Apache-2.0
#include "journal/directory_lock.hpp"

#include <fmt/format.h>

#include <chrono>
#include <thread>
#include <utility>

namespace lockstep {
namespace {

constexpr int lock_attempts = 5;
constexpr auto lock_wait = std::chrono::milliseconds(50);

}  // namespace

DirectoryLock::DirectoryLock(DirectoryLock&& other) noexcept
    : disk_(other.disk_), file_(std::exchange(other.file_, FileId::none)) {}

DirectoryLock& DirectoryLock::operator=(DirectoryLock&& other) noexcept {
  std::swap(disk_, other.disk_);
  std::swap(file_, other.file_);
  return *this;
}

DirectoryLock::~DirectoryLock() {
  if (file_ != FileId::none) disk_->close(file_);
}

Result<DirectoryLock> DirectoryLock::take(Disk& disk, const std::string& directory) {
  auto file = disk.open_directory(directory);
  if (!file) return std::unexpected(file.error());
  DirectoryLock lock(disk, *file);
  if (auto locked = lock_with_patience(disk, *file, held_by_another(directory)); !locked)
    return std::unexpected(locked.error());
  return lock;
}

Result<void> lock_with_patience(Disk& disk, FileId file, const std::string& when_busy) {
  Result<void> locked = disk.lock(file);
  for (int attempt = 1; attempt < lock_attempts && !locked && locked.error().code == ErrorCode::busy; ++attempt) {
    std::this_thread::sleep_for(lock_wait);
    locked = disk.lock(file);
  }
  if (!locked && locked.error().code == ErrorCode::busy) return fail(ErrorCode::busy, when_busy);
  return locked;
}

std::string held_by_another(const std::string& directory) {
  return fmt::format("another process runs on {}; stop it, or use another directory", directory);
}

}  // namespace lockstep
