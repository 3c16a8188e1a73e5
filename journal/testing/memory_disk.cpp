// SPDX-License-Identifier: Apache-2.0
#include "journal/testing/memory_disk.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <optional>
#include <utility>

#include "base/assert.hpp"
#include "base/system_error.hpp"
#include "journal/aligned_buffer.hpp"

namespace lockstep {
namespace {

using Operation = DiskFaults::Operation;

std::string directory_of(const std::string& path) {
  const std::size_t slash = path.rfind('/');
  return slash == std::string::npos ? "." : path.substr(0, slash);
}

std::string without_trailing_slash(std::string path) {
  while (path.size() > 1 && path.back() == '/') path.pop_back();
  return path;
}

}  // namespace

Result<void> MemoryDisk::step_or_fail(const std::string& operation, const std::string& path) {
  if (const auto fault = faults_.next(Operation::other))
    return std::unexpected(system_error(operation, path, fault->error));
  return {};
}

Result<MemoryDisk::Handle*> MemoryDisk::handle_of(FileId file, const char* operation) {
  const auto found = handles_.find(static_cast<std::int32_t>(file));
  if (found == handles_.end()) return std::unexpected(system_error(operation, "a closed file", EBADF));
  return &found->second;
}

Result<void> MemoryDisk::check_direct(const Handle& handle, std::uint64_t offset, std::size_t bytes,
                                      const void* address) const {
  const bool aligned = offset % disk_block_bytes == 0 && bytes % disk_block_bytes == 0 &&
                       reinterpret_cast<std::uintptr_t>(address) % disk_block_bytes == 0;
  if (!handle.direct || aligned) return {};
  return std::unexpected(system_error("access past the page cache", handle.path, EINVAL));
}

FileId MemoryDisk::add_handle(Handle handle) {
  handles_[next_handle_] = std::move(handle);
  return static_cast<FileId>(next_handle_++);
}

void MemoryDisk::apply(std::map<std::string, FilePointer>& names, const NameChange& change) {
  if (!change.replaced.empty()) names.erase(change.replaced);
  if (change.file != nullptr) {
    names[change.path] = change.file;
  } else {
    names.erase(change.path);
  }
}

void MemoryDisk::change_name(NameChange change) {
  if (const auto before = names_.find(change.path); before != names_.end()) release(before->second->view().size());
  apply(names_, change);
  name_changes_.push_back(std::move(change));
}

bool MemoryDisk::reserve(const MemoryFile& file, std::uint64_t bytes) {
  const std::uint64_t grown = bytes - std::min<std::uint64_t>(bytes, file.view().size());
  if (free_bytes_ == UINT64_MAX || grown == 0) return true;
  if (grown > free_bytes_) return false;
  free_bytes_ -= grown;
  return true;
}

void MemoryDisk::release(std::uint64_t bytes) {
  if (free_bytes_ != UINT64_MAX) free_bytes_ += bytes;
}

Result<FileId> MemoryDisk::open(const std::string& path, OpenMode mode) {
  auto found = names_.find(path);
  const bool creates = mode == OpenMode::create_direct || mode == OpenMode::append;
  if (faults_.dead()) return std::unexpected(system_error("open", path, EIO));
  if (found == names_.end() && !creates) return std::unexpected(system_error("open", path, ENOENT));
  if (found != names_.end() && mode == OpenMode::create_direct)
    return std::unexpected(system_error("open", path, EEXIST));
  if (found == names_.end()) {
    if (auto stepped = step_or_fail("open", path); !stepped) return std::unexpected(stepped.error());
    change_name({path, std::make_shared<MemoryFile>(), ""});
    found = names_.find(path);
  }
  const bool direct = mode == OpenMode::create_direct || mode == OpenMode::write_direct;
  return add_handle({found->second, path, direct, mode == OpenMode::append});
}

Result<FileId> MemoryDisk::open_directory(const std::string& path) {
  if (!directories_.contains(without_trailing_slash(path)))
    return std::unexpected(system_error("open directory", path, ENOENT));
  return add_handle({nullptr, without_trailing_slash(path), false, false});
}

void MemoryDisk::close(FileId file) {
  const auto number = static_cast<std::int32_t>(file);
  if (const auto held = locks_.find(number); held != locks_.end()) {
    locked_files_.erase(held->second);
    locks_.erase(held);
  }
  handles_.erase(number);
}

Result<std::shared_ptr<std::byte[]>> MemoryDisk::map_shared(const std::string& path, std::size_t bytes) {
  if (faults_.dead()) return std::unexpected(system_error("map", path, EIO));
  auto& [size, memory] = shared_[path];
  if (size != bytes) memory = std::make_shared<std::byte[]>(bytes);
  size = bytes;
  return memory;
}

Result<void> MemoryDisk::lock(FileId file) {
  auto handle = handle_of(file, "lock");
  if (!handle) return std::unexpected(handle.error());
  const void* identity = (*handle)->file.get();
  if (identity == nullptr) {
    auto& directory = directory_identity_[(*handle)->path];
    if (directory == nullptr) directory = std::make_shared<int>(0);
    identity = directory.get();
  }
  const auto held = locks_.find(static_cast<std::int32_t>(file));
  if (held != locks_.end()) return {};
  if (!locked_files_.insert(identity).second)
    return std::unexpected(system_error("lock", (*handle)->path, EWOULDBLOCK));
  locks_[static_cast<std::int32_t>(file)] = identity;
  return {};
}

Result<std::uint64_t> MemoryDisk::size(FileId file) {
  auto handle = handle_of(file, "read the size of");
  if (!handle) return std::unexpected(handle.error());
  return (*handle)->file->view().size();
}

Result<std::size_t> MemoryDisk::read(FileId file, std::uint64_t offset, std::span<std::byte> into) {
  auto handle = handle_of(file, "read");
  if (!handle) return std::unexpected(handle.error());
  const std::string& path = (*handle)->path;
  if (faults_.dead()) return std::unexpected(system_error("read", path, EIO));
  if (auto aligned = check_direct(**handle, offset, into.size(), into.data()); !aligned)
    return std::unexpected(aligned.error());
  if (faults_.read_fails(path, offset, into.size()))
    return std::unexpected(system_error(fmt::format("read {} bytes at {} of", into.size(), offset), path, EIO));
  const auto& view = (*handle)->file->view();
  if (offset >= view.size()) return 0;
  const std::size_t got = std::min<std::uint64_t>(into.size(), view.size() - offset);
  std::memcpy(into.data(), view.data() + offset, got);
  return got;
}

void MemoryDisk::misdirect(const MemoryFile* meant, std::uint64_t offset, std::span<const std::byte> bytes) {
  std::vector<MemoryFile*> files;
  for (const auto& [path, file] : names_)
    if (file->view().size() >= disk_block_bytes) files.push_back(file.get());
  if (files.empty()) return;
  MemoryFile& file = *files[random_() % files.size()];
  const std::uint64_t sectors = file.view().size() / disk_block_bytes;
  std::uint64_t sector = random_() % sectors;
  if (&file == meant && sector * disk_block_bytes == offset) sector = (sector + 1) % sectors;
  const std::uint64_t at = sector * disk_block_bytes;
  file.write(at, bytes.first(std::min<std::uint64_t>(bytes.size(), file.view().size() - at)), false);
}

Result<void> MemoryDisk::write(FileId file, std::uint64_t offset, std::span<const std::byte> bytes) {
  auto handle = handle_of(file, "write");
  if (!handle) return std::unexpected(handle.error());
  if (auto aligned = check_direct(**handle, offset, bytes.size(), bytes.data()); !aligned) return aligned;
  MemoryFile& target = *(*handle)->file;
  const bool was_dead = faults_.dead();
  const auto fault = faults_.next(Operation::write);
  const auto refuse = [&](int error) {
    return std::unexpected(
        system_error(fmt::format("write {} bytes at {} of", bytes.size(), offset), (*handle)->path, error));
  };
  if (was_dead) return refuse(EIO);
  if (fault) {
    switch (fault->fault) {
      case Fault::power_cut:
        target.begin_write(offset, {bytes.begin(), bytes.end()});
        return refuse(fault->error);
      case Fault::error:
      case Fault::short_write:
        target.write_some(offset, bytes, (*handle)->buffered, random_);
        return refuse(fault->error);
      case Fault::misdirected_write:
        misdirect(&target, offset, bytes);
        return {};
      case Fault::lost_write:
        return {};
    }
  }
  if (!reserve(target, offset + bytes.size())) return refuse(ENOSPC);
  target.write(offset, bytes, (*handle)->buffered);
  return {};
}

Result<void> MemoryDisk::sync(FileId file) {
  auto handle = handle_of(file, "sync");
  if (!handle) return std::unexpected(handle.error());
  MemoryFile& target = *(*handle)->file;
  if (auto stepped = step_or_fail("sync", (*handle)->path); !stepped) {
    if (!faults_.dead()) target.fail_sync(target.settled(), random_);
    return stepped;
  }
  target.make_durable(target.settled());
  return {};
}

Result<void> MemoryDisk::sync_directory(const std::string& path) {
  if (auto stepped = step_or_fail("sync directory", path); !stepped) return stepped;
  const std::string directory = without_trailing_slash(path);
  const auto covered = [&](const NameChange& change) { return directory_of(change.path) == directory; };
  for (const NameChange& change : name_changes_)
    if (covered(change)) apply(durable_names_, change);
  std::erase_if(name_changes_, covered);
  return {};
}

Result<void> MemoryDisk::zero_fill(FileId file, std::uint64_t bytes) {
  auto handle = handle_of(file, "zero-fill");
  if (!handle) return std::unexpected(handle.error());
  if (auto stepped = step_or_fail("zero-fill", (*handle)->path); !stepped) return stepped;
  MemoryFile& target = *(*handle)->file;
  if (!reserve(target, bytes)) {
    target.zero_fill(free_bytes_);  // as much as there was
    free_bytes_ = 0;
    return std::unexpected(system_error("reserve space for", (*handle)->path, ENOSPC));
  }
  target.zero_fill(bytes);
  return {};
}

Result<void> MemoryDisk::truncate(FileId file, std::uint64_t bytes) {
  auto handle = handle_of(file, "truncate");
  if (!handle) return std::unexpected(handle.error());
  if (auto stepped = step_or_fail("truncate", (*handle)->path); !stepped) return stepped;
  MemoryFile& target = *(*handle)->file;
  release(target.view().size() - std::min<std::uint64_t>(bytes, target.view().size()));
  target.resize(bytes);
  return {};
}

Result<void> MemoryDisk::rename(const std::string& from, const std::string& to) {
  const auto found = names_.find(from);
  if (found == names_.end()) return std::unexpected(system_error("rename", from, ENOENT));
  if (auto stepped = step_or_fail("rename", from); !stepped) return stepped;
  change_name({to, found->second, from});
  return {};
}

Result<void> MemoryDisk::remove(const std::string& path) {
  if (const auto names = list(path); names && names->empty()) {
    if (auto stepped = step_or_fail("remove", path); !stepped) return stepped;
    directories_.erase(without_trailing_slash(path));
    return {};
  }
  if (!names_.contains(path)) return std::unexpected(system_error("remove", path, ENOENT));
  if (auto stepped = step_or_fail("remove", path); !stepped) return stepped;
  change_name({path, nullptr, ""});
  return {};
}

Result<void> MemoryDisk::make_directory(const std::string& path) {
  if (faults_.dead()) return std::unexpected(system_error("create directory", path, EIO));
  for (std::string at = without_trailing_slash(path); directories_.insert(at).second;) at = directory_of(at);
  return {};
}

Result<std::vector<std::string>> MemoryDisk::list(const std::string& path) {
  const std::string directory = without_trailing_slash(path);
  if (faults_.dead()) return std::unexpected(system_error("list directory", path, EIO));
  if (!directories_.contains(directory)) return std::unexpected(system_error("list directory", path, ENOENT));
  std::vector<std::string> names;
  for (const auto& [name, file] : names_)
    if (directory_of(name) == directory) names.push_back(name.substr(directory.size() + 1));
  return names;
}

void MemoryDisk::submit_write(FileId file, std::uint64_t offset, std::span<const iovec> pieces, std::uint64_t token) {
  auto handle = handle_of(file, "write");
  LOCKSTEP_ASSERT(handle, "a write is submitted to an open file");
  std::vector<std::byte> content;
  for (const iovec& piece : pieces) {
    LOCKSTEP_ASSERT(check_direct(**handle, offset, piece.iov_len, piece.iov_base), "direct writes are aligned");
    const auto* bytes = static_cast<const std::byte*>(piece.iov_base);
    content.insert(content.end(), bytes, bytes + piece.iov_len);
  }
  Submission submission;
  submission.token = token;
  submission.file = (*handle)->file;
  submission.path = (*handle)->path;
  submission.offset = offset;
  submission.pieces.assign(pieces.begin(), pieces.end());
  submission.change = submission.file->begin_write(offset, std::move(content));
  submitted_.push_back(std::move(submission));
}

void MemoryDisk::submit_sync(FileId file, std::uint64_t token) {
  auto handle = handle_of(file, "sync");
  LOCKSTEP_ASSERT(handle, "a sync is submitted to an open file");
  Submission submission;
  submission.kind = Submission::Kind::sync;
  submission.token = token;
  submission.file = (*handle)->file;
  submission.path = (*handle)->path;
  submission.covered = submission.file->settled();
  submitted_.push_back(std::move(submission));
}

void MemoryDisk::submit_background(std::function<Result<void>(Disk&)> work, std::uint64_t token) {
  Submission submission;
  submission.kind = Submission::Kind::background;
  submission.token = token;
  submission.work = std::move(work);
  submitted_.push_back(std::move(submission));
}

std::int64_t MemoryDisk::complete_write(Submission& submission) {
  if (faults_.dead()) return -EIO;
  MemoryFile& file = *submission.file;
  const auto attempted = file.in_flight(submission.change);
  std::size_t at = 0;
  for (const iovec& piece : submission.pieces) {
    LOCKSTEP_ASSERT(std::memcmp(piece.iov_base, attempted.data() + at, piece.iov_len) == 0,
                    "bytes in flight are not changed");
    at += piece.iov_len;
  }
  const auto bytes = static_cast<std::int64_t>(attempted.size());
  const auto fault = faults_.next(Operation::write);
  if (fault) {
    switch (fault->fault) {
      case Fault::power_cut:
        return -EIO;
      case Fault::error:
        file.fail_write(submission.change, random_);
        return -fault->error;
      case Fault::short_write:
        file.finish_write(submission.change, attempted.size() / 2);
        return bytes / 2;
      case Fault::misdirected_write:
        misdirect(&file, submission.offset, file.forget_write(submission.change));
        return bytes;
      case Fault::lost_write:
        file.forget_write(submission.change);
        return bytes;
    }
  }
  if (!reserve(file, submission.offset + attempted.size())) {
    file.fail_write(submission.change, random_);
    return -ENOSPC;
  }
  file.finish_write(submission.change, attempted.size());
  return bytes;
}

std::int64_t MemoryDisk::complete_sync(const Submission& submission) {
  if (const auto fault = faults_.next(Operation::other)) {
    if (!faults_.dead()) submission.file->fail_sync(submission.covered, random_);
    return -fault->error;
  }
  submission.file->make_durable(submission.covered);
  return 0;
}

std::int64_t MemoryDisk::complete(Submission& submission) {
  switch (submission.kind) {
    case Submission::Kind::write:
      return complete_write(submission);
    case Submission::Kind::sync:
      return complete_sync(submission);
    case Submission::Kind::background:
      if (const auto done = submission.work(*this); !done) return -errno_of(done.error().code);
      return 0;
  }
  return -EINVAL;
}

std::span<const DiskCompletion> MemoryDisk::poll() {
  completed_.clear();
  std::vector<Submission> due;
  auto count = static_cast<std::ptrdiff_t>(std::min<std::uint64_t>(submitted_.size(), completions_left_));
  if (shuffled_ && !faults_.dead() && count > 0) {
    std::ranges::shuffle(submitted_, random_);
    count -= static_cast<std::ptrdiff_t>(random_() % static_cast<std::uint64_t>(count));
  }
  std::move(submitted_.begin(), submitted_.begin() + count, std::back_inserter(due));
  submitted_.erase(submitted_.begin(), submitted_.begin() + count);
  if (completions_left_ != UINT64_MAX) completions_left_ -= static_cast<std::uint64_t>(count);
  for (Submission& submission : due) completed_.push_back({submission.token, complete(submission)});
  return completed_;
}

std::vector<MemoryDisk::FilePointer> MemoryDisk::files() const {
  std::vector<FilePointer> files;
  const auto add = [&](const FilePointer& file) {
    if (file != nullptr && std::ranges::find(files, file) == files.end()) files.push_back(file);
  };
  for (const auto& [path, file] : durable_names_) add(file);
  for (const NameChange& change : name_changes_) add(change.file);
  return files;
}

std::size_t MemoryDisk::questions(std::size_t piece_bytes) const {
  std::size_t count = name_changes_.size();
  for (const FilePointer& file : files()) count += file->questions(piece_bytes);
  return count;
}

MemoryDisk MemoryDisk::after_power_cut(const Survival& survives, std::size_t piece_bytes) const {
  MemoryDisk after;
  after.directories_ = directories_;
  std::map<std::string, FilePointer> names = durable_names_;
  std::size_t question = 0;
  for (const NameChange& change : name_changes_)
    if (survives(question++)) apply(names, change);
  // A directory whose files were removed, none of it durably, is there again with them.
  for (const auto& [path, named] : names)
    for (std::string at = directory_of(path); after.directories_.insert(at).second;) at = directory_of(at);
  for (const FilePointer& file : files()) {
    const SharedBytes content = file->left_by_cut(survives, question, piece_bytes);
    question += file->questions(piece_bytes);
    for (const auto& [path, named] : names)
      if (named == file) after.put_shared(path, content);
  }
  return after;
}

MemoryDisk MemoryDisk::after_power_cut(std::uint64_t seed) const {
  std::mt19937_64 random(seed);
  MemoryDisk after = after_power_cut(draw_survivors(random));
  after.random_.seed(seed);
  return after;
}

MemoryDisk MemoryDisk::copy() const {
  MemoryDisk copied;
  copied.directories_ = directories_;
  for (const auto& [path, file] : names_) copied.put_shared(path, file->shared_view());
  return copied;
}

bool MemoryDisk::has_files_of(const MemoryDisk& other) const {
  return std::ranges::equal(names_, other.names_, [](const auto& mine, const auto& theirs) {
    return mine.first == theirs.first && mine.second->shared_view() == theirs.second->shared_view();
  });
}

std::span<const std::byte> MemoryDisk::bytes(const std::string& path) const {
  const auto found = names_.find(path);
  LOCKSTEP_ASSERT(found != names_.end(), "a test looks at a file that is there");
  return found->second->view();
}

void MemoryDisk::overwrite(const std::string& path, std::uint64_t offset, std::span<const std::byte> bytes) {
  const auto found = names_.find(path);
  LOCKSTEP_ASSERT(found != names_.end(), "a test damages a file that is there");
  found->second->damage(offset, bytes);
}

void MemoryDisk::flip_bit(const std::string& path, std::uint64_t bit) {
  const std::byte flipped = bytes(path)[bit / 8] ^ static_cast<std::byte>(1 << bit % 8);
  overwrite(path, bit / 8, std::span(&flipped, 1));
}

void MemoryDisk::put_shared(const std::string& path, SharedBytes content) {
  auto file = std::make_shared<MemoryFile>();
  file->set(std::move(content));
  names_[path] = file;
  durable_names_[path] = file;
}

}  // namespace lockstep
