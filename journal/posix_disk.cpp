// SPDX-License-Identifier: Apache-2.0
#include "journal/posix_disk.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <system_error>

#include "journal/aligned_buffer.hpp"

namespace lockstep {
namespace {

int descriptor_of(FileId file) {
  return static_cast<int>(file);
}

int open_flags(OpenMode mode) {
  switch (mode) {
    case OpenMode::read:
      return O_RDONLY;
    case OpenMode::write_direct:
      return O_RDWR | O_DIRECT;
    case OpenMode::create_direct:
      return O_RDWR | O_DIRECT | O_CREAT | O_EXCL;
    case OpenMode::append:
      return O_RDWR | O_CREAT;
  }
  return O_RDONLY;
}

/// Repeats a system call that a signal cut short.
template <class Call>
auto uninterrupted(Call call) {
  auto result = call();
  while (result < 0 && errno == EINTR) result = call();
  return result;
}

}  // namespace

Error system_error(const std::string& operation, const std::string& object, int error) {
  ErrorCode code = ErrorCode::io;
  const char* remedy = "";
  if (error == ENOSPC || error == EDQUOT) code = ErrorCode::full, remedy = "; free space on that file system";
  if (error == EWOULDBLOCK) code = ErrorCode::busy;
  if (error == EACCES || error == EPERM || error == EROFS) remedy = "; check its owner, mode and mount options";
  return {code, fmt::format("cannot {} {}: {} (errno {}){}", operation, object, std::generic_category().message(error),
                            error, remedy)};
}

std::int64_t completion_result(const Result<void>& result) {
  if (result) return 0;
  return result.error().code == ErrorCode::full ? -ENOSPC : -EIO;
}

PosixDisk::~PosixDisk() {
  for (const auto& [descriptor, path] : paths_) ::close(descriptor);
}

Result<FileId> PosixDisk::remember(int descriptor, const std::string& path) {
  const std::lock_guard guard(mutex_);
  paths_[descriptor] = path;
  return static_cast<FileId>(descriptor);
}

std::string PosixDisk::path_of(FileId file) {
  const std::lock_guard guard(mutex_);
  const auto found = paths_.find(descriptor_of(file));
  return found == paths_.end() ? fmt::format("descriptor {}", descriptor_of(file)) : found->second;
}

Result<void> PosixDisk::fail_on(FileId file, const std::string& operation, int error) {
  return std::unexpected(system_error(operation, path_of(file), error));
}

Result<FileId> PosixDisk::open(const std::string& path, OpenMode mode) {
  const int flags = open_flags(mode) | O_CLOEXEC;
  int descriptor = uninterrupted([&] { return ::open(path.c_str(), flags, 0644); });
  // A file system without O_DIRECT says EINVAL; a file it has created by then is there.
  if (descriptor < 0 && errno == EINVAL && (flags & O_DIRECT) != 0)
    descriptor = uninterrupted([&] { return ::open(path.c_str(), flags & ~(O_DIRECT | O_EXCL), 0644); });
  if (descriptor < 0) return std::unexpected(system_error("open", path, errno));
  return remember(descriptor, path);
}

Result<FileId> PosixDisk::open_directory(const std::string& path) {
  const int descriptor = uninterrupted([&] { return ::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC); });
  if (descriptor < 0) return std::unexpected(system_error("open directory", path, errno));
  return remember(descriptor, path);
}

void PosixDisk::close(FileId file) {
  {
    const std::lock_guard guard(mutex_);
    paths_.erase(descriptor_of(file));
  }
  ::close(descriptor_of(file));
}

Result<std::uint64_t> PosixDisk::size(FileId file) {
  struct stat status{};
  if (::fstat(descriptor_of(file), &status) != 0)
    return std::unexpected(system_error("read the size of", path_of(file), errno));
  return static_cast<std::uint64_t>(status.st_size);
}

Result<std::size_t> PosixDisk::read(FileId file, std::uint64_t offset, std::span<std::byte> into) {
  std::size_t done = 0;
  while (done < into.size()) {
    const ssize_t got = uninterrupted([&] {
      return ::pread(descriptor_of(file), into.data() + done, into.size() - done, static_cast<off_t>(offset + done));
    });
    if (got < 0)
      return std::unexpected(
          system_error(fmt::format("read {} bytes at {} of", into.size(), offset), path_of(file), errno));
    if (got == 0) break;
    done += static_cast<std::size_t>(got);
  }
  return done;
}

Result<void> PosixDisk::write(FileId file, std::uint64_t offset, std::span<const std::byte> bytes) {
  std::size_t done = 0;
  while (done < bytes.size()) {
    const ssize_t put = uninterrupted([&] {
      return ::pwrite(descriptor_of(file), bytes.data() + done, bytes.size() - done, static_cast<off_t>(offset + done));
    });
    if (put <= 0)
      return fail_on(file, fmt::format("write {} bytes at {} of", bytes.size(), offset), put < 0 ? errno : ENOSPC);
    done += static_cast<std::size_t>(put);
  }
  return {};
}

Result<void> PosixDisk::sync(FileId file) {
  if (::fdatasync(descriptor_of(file)) != 0) return fail_on(file, "sync", errno);
  return {};
}

Result<void> PosixDisk::sync_directory(const std::string& path) {
  auto directory = open_directory(path);
  if (!directory) return std::unexpected(directory.error());
  const int result = ::fsync(descriptor_of(*directory));
  const int error = errno;
  close(*directory);
  if (result != 0) return std::unexpected(system_error("sync directory", path, error));
  return {};
}

Result<void> PosixDisk::zero_fill(FileId file, std::uint64_t bytes) {
  const int refused = ::posix_fallocate(descriptor_of(file), 0, static_cast<off_t>(bytes));
  if (refused != 0 && refused != EINVAL && refused != EOPNOTSUPP)
    return fail_on(file, fmt::format("reserve {} bytes for", bytes), refused);
  constexpr std::size_t piece_bytes = std::size_t{1} << 20;
  const AlignedBuffer zeros(std::min<std::size_t>(piece_bytes, bytes));
  for (std::uint64_t offset = 0; offset < bytes; offset += zeros.size()) {
    const std::size_t length = std::min<std::uint64_t>(zeros.size(), bytes - offset);
    if (auto written = write(file, offset, zeros.span().first(length)); !written) return written;
  }
  return {};
}

Result<void> PosixDisk::truncate(FileId file, std::uint64_t bytes) {
  if (::ftruncate(descriptor_of(file), static_cast<off_t>(bytes)) != 0)
    return fail_on(file, fmt::format("truncate to {} bytes", bytes), errno);
  return {};
}

Result<void> PosixDisk::rename(const std::string& from, const std::string& to) {
  if (::rename(from.c_str(), to.c_str()) != 0)
    return std::unexpected(system_error("rename", fmt::format("{} to {}", from, to), errno));
  return {};
}

Result<void> PosixDisk::remove(const std::string& path) {
  if (::unlink(path.c_str()) != 0) return std::unexpected(system_error("remove", path, errno));
  return {};
}

Result<void> PosixDisk::make_directory(const std::string& path) {
  std::error_code error;
  std::filesystem::create_directories(path, error);
  if (error) return std::unexpected(system_error("create directory", path, error.value()));
  return {};
}

Result<std::vector<std::string>> PosixDisk::list(const std::string& path) {
  const std::unique_ptr<DIR, int (*)(DIR*)> directory(::opendir(path.c_str()),
                                                      [](DIR* dir) { return ::closedir(dir); });
  if (directory == nullptr) return std::unexpected(system_error("list directory", path, errno));
  std::vector<std::string> names;
  errno = 0;
  while (const dirent* entry = ::readdir(directory.get())) {
    const std::string name = entry->d_name;
    if (name != "." && name != "..") names.push_back(name);
  }
  if (errno != 0) return std::unexpected(system_error("list directory", path, errno));
  std::ranges::sort(names);
  return names;
}

Result<void> PosixDisk::lock(FileId file) {
  if (::flock(descriptor_of(file), LOCK_EX | LOCK_NB) != 0) return fail_on(file, "lock", errno);
  return {};
}

void PosixDisk::submit_write(FileId file, std::uint64_t offset, std::span<const iovec> pieces, std::uint64_t token) {
  const ssize_t put = uninterrupted([&] {
    return ::pwritev(descriptor_of(file), pieces.data(), static_cast<int>(pieces.size()), static_cast<off_t>(offset));
  });
  done_.push_back({token, put < 0 ? -errno : put});
}

void PosixDisk::submit_sync(FileId file, std::uint64_t token) {
  done_.push_back({token, ::fdatasync(descriptor_of(file)) == 0 ? 0 : -errno});
}

void PosixDisk::submit_background(std::function<Result<void>(Disk&)> work, std::uint64_t token) {
  done_.push_back({token, completion_result(work(*this))});
}

std::span<const DiskCompletion> PosixDisk::poll() {
  reported_.swap(done_);
  done_.clear();
  return reported_;
}

}  // namespace lockstep
