// SPDX-License-Identifier: Apache-2.0
#include "journal/posix_files.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>

#include "base/descriptor.hpp"
#include "base/log.hpp"
#include "base/system_error.hpp"

namespace lockstep {
namespace {

constexpr std::size_t zero_block_bytes = std::size_t{1} << 20;
// Not const: it then lies in .bss and costs no file bytes. Nothing writes it.
alignas(4096) std::byte zero_block[zero_block_bytes];

int descriptor_of(FileId file) {
  return static_cast<int>(file);
}

/// The name of an open file, for messages.
std::string name_of(FileId file) {
  std::error_code ignored;
  const auto link = fmt::format("/proc/self/fd/{}", descriptor_of(file));
  const auto path = std::filesystem::read_symlink(link, ignored);
  return ignored ? fmt::format("descriptor {}", descriptor_of(file)) : path.string();
}

std::unexpected<Error> failure(std::string_view operation, FileId file) {
  const int error = errno;
  return system_failure(operation, name_of(file), error);
}

int flags_of(OpenMode mode) {
  switch (mode) {
    case OpenMode::read:
      return O_RDONLY | O_CLOEXEC;
    case OpenMode::write_direct:
      return O_RDWR | O_DIRECT | O_CLOEXEC;
    case OpenMode::create_direct:
      return O_RDWR | O_DIRECT | O_CREAT | O_EXCL | O_CLOEXEC;
    case OpenMode::append:
      return O_RDWR | O_APPEND | O_CREAT | O_CLOEXEC;
  }
  return O_RDONLY | O_CLOEXEC;
}

constexpr mode_t file_permissions = 0640;

/// Calls `attempt` again as long as a signal interrupts it.
template <class Attempt>
auto uninterrupted(Attempt attempt) {
  auto result = attempt();
  while (result < 0 && errno == EINTR) result = attempt();
  return result;
}

}  // namespace

Result<FileId> PosixFiles::open(const std::string& path, OpenMode mode) {
  const int flags = flags_of(mode);
  int fd = uninterrupted([&] { return ::open(path.c_str(), flags, file_permissions); });
  if (fd < 0 && errno == EINVAL && (flags & O_DIRECT) != 0) {
    // tmpfs before Linux 6.5 and some FUSE file systems refuse O_DIRECT, after having created the file. Durability
    // rests on fdatasync, so the page cache costs speed only.
    const int buffered = flags & ~(O_DIRECT | O_EXCL);
    fd = uninterrupted([&] { return ::open(path.c_str(), buffered, file_permissions); });
    if (fd >= 0)
      log(LogLevel::warning, "disk", "{}: no O_DIRECT on this file system; writing through the page cache", path);
  }
  if (fd < 0) return system_failure("open", path, errno);
  return FileId{fd};
}

Result<std::uint64_t> PosixFiles::size(FileId file) {
  struct stat status{};
  if (::fstat(descriptor_of(file), &status) != 0) return failure("fstat", file);
  return static_cast<std::uint64_t>(status.st_size);
}

Result<std::size_t> PosixFiles::read(FileId file, std::uint64_t offset, std::span<std::byte> into) {
  std::size_t done = 0;
  while (done < into.size()) {
    const ssize_t got = uninterrupted([&] {
      return ::pread(descriptor_of(file), into.data() + done, into.size() - done, static_cast<off_t>(offset + done));
    });
    if (got < 0) return failure(fmt::format("read at {} of", offset + done), file);
    if (got == 0) break;
    done += static_cast<std::size_t>(got);
  }
  return done;
}

Result<void> PosixFiles::write(FileId file, std::uint64_t offset, std::span<const std::byte> bytes) {
  std::size_t done = 0;
  while (done < bytes.size()) {
    const ssize_t put = uninterrupted([&] {
      return ::pwrite(descriptor_of(file), bytes.data() + done, bytes.size() - done, static_cast<off_t>(offset + done));
    });
    if (put < 0) return failure(fmt::format("write at {} of", offset + done), file);
    if (put == 0) return fail(ErrorCode::io, fmt::format("write at {} of {}: nothing written", offset, name_of(file)));
    done += static_cast<std::size_t>(put);
  }
  return {};
}

Result<void> PosixFiles::sync(FileId file) {
  if (::fdatasync(descriptor_of(file)) != 0) return failure("fdatasync", file);
  return {};
}

Result<void> PosixFiles::sync_directory(const std::string& path) {
  const Descriptor directory(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!directory.is_open()) return system_failure("open directory", path, errno);
  if (::fsync(directory.get()) != 0) return system_failure("fsync directory", path, errno);
  return {};
}

Result<void> PosixFiles::zero_fill(FileId file, std::uint64_t bytes) {
  const int reserved = uninterrupted([&] { return ::fallocate(descriptor_of(file), 0, 0, static_cast<off_t>(bytes)); });
  if (reserved != 0 && errno != EOPNOTSUPP) return failure(fmt::format("reserve {} bytes of", bytes), file);
  for (std::uint64_t done = 0; done < bytes; done += zero_block_bytes) {
    const std::size_t piece = std::min<std::uint64_t>(zero_block_bytes, bytes - done);
    if (auto written = write(file, done, {zero_block, piece}); !written) return written;
  }
  return {};
}

Result<void> PosixFiles::truncate(FileId file, std::uint64_t bytes) {
  const int done = uninterrupted([&] { return ::ftruncate(descriptor_of(file), static_cast<off_t>(bytes)); });
  if (done != 0) return failure(fmt::format("truncate to {}", bytes), file);
  return {};
}

Result<void> PosixFiles::rename(const std::string& from, const std::string& to) {
  if (::rename(from.c_str(), to.c_str()) != 0) return system_failure("rename", from + " to " + to, errno);
  return {};
}

Result<void> PosixFiles::remove(const std::string& path) {
  if (::remove(path.c_str()) != 0) return system_failure("remove", path, errno);
  return {};
}

Result<void> PosixFiles::make_directory(const std::string& path) {
  std::error_code error;
  std::filesystem::create_directories(path, error);
  if (error) return system_failure("make directory", path, error.value());
  return {};
}

Result<std::vector<std::string>> PosixFiles::list(const std::string& path) {
  std::error_code error;
  std::vector<std::string> names;
  std::filesystem::directory_iterator entry(path, error);
  for (; !error && entry != std::filesystem::directory_iterator(); entry.increment(error))
    names.push_back(entry->path().filename().string());
  if (error) return system_failure("list", path, error.value());
  std::ranges::sort(names);
  return names;
}

Result<std::shared_ptr<std::byte[]>> PosixFiles::map_shared(const std::string& path, std::size_t bytes) {
  const Descriptor file(
      uninterrupted([&] { return ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, file_permissions); }));
  if (!file.is_open()) return system_failure("open", path, errno);
  struct stat status{};
  if (::fstat(file.get(), &status) != 0) return system_failure("fstat", path, errno);
  if (static_cast<std::size_t>(status.st_size) != bytes &&
      (::ftruncate(file.get(), 0) != 0 || ::ftruncate(file.get(), static_cast<off_t>(bytes)) != 0))
    return system_failure("size", path, errno);
  // Reserved now: a store into a hole of a full disk would end the process.
  if (const int error = ::posix_fallocate(file.get(), 0, static_cast<off_t>(bytes)); error != 0)
    return system_failure(fmt::format("reserve {} bytes of", bytes), path, error);
  void* const memory = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file.get(), 0);
  if (memory == MAP_FAILED) return system_failure("map", path, errno);
  return std::shared_ptr<std::byte[]>(static_cast<std::byte*>(memory), [bytes](std::byte* at) { ::munmap(at, bytes); });
}

Result<void> PosixFiles::lock(FileId file) {
  const int done = uninterrupted([&] { return ::flock(descriptor_of(file), LOCK_EX | LOCK_NB); });
  if (done != 0) return failure("lock", file);
  return {};
}

Result<FileId> PosixFiles::open_directory(const std::string& path) {
  const int fd = ::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0) return system_failure("open directory", path, errno);
  return FileId{fd};
}

}  // namespace lockstep
