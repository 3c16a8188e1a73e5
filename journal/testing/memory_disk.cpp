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

constexpr std::size_t device_piece_bytes = 512;

std::string directory_of(const std::string& path) {
  const std::size_t slash = path.rfind('/');
  return slash == std::string::npos ? "." : path.substr(0, slash);
}

std::string without_trailing_slash(std::string path) {
  while (path.size() > 1 && path.back() == '/') path.pop_back();
  return path;
}

}  // namespace

void MemoryDisk::fail_at(std::uint64_t nth, Fault fault, int error) {
  fault_at_ = operations_ + nth;
  fault_ = fault;
  fault_errno_ = error;
}

std::optional<MemoryDisk::Fault> MemoryDisk::step() {
  if (dead_) return Fault::power_cut;
  if (++operations_ != fault_at_) return std::nullopt;
  if (fault_ == Fault::power_cut) dead_ = true;
  return fault_;
}

Error MemoryDisk::fault_error(const std::string& operation, const std::string& path) const {
  return system_error(operation, path, dead_ || fault_errno_ == 0 ? EIO : fault_errno_);
}

Result<void> MemoryDisk::step_or_fail(const std::string& operation, const std::string& path) {
  if (step()) return std::unexpected(fault_error(operation, path));
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

void MemoryDisk::change_name(NameChange change) {
  if (!change.replaced.empty()) names_.erase(change.replaced);
  if (change.file != nullptr) {
    names_[change.path] = change.file;
  } else {
    names_.erase(change.path);
  }
  name_changes_.push_back(std::move(change));
}

Result<FileId> MemoryDisk::open(const std::string& path, OpenMode mode) {
  auto found = names_.find(path);
  const bool creates = mode == OpenMode::create_direct || mode == OpenMode::append;
  if (dead_) return std::unexpected(system_error("open", path, EIO));
  if (found == names_.end() && !creates) return std::unexpected(system_error("open", path, ENOENT));
  if (found != names_.end() && mode == OpenMode::create_direct)
    return std::unexpected(system_error("open", path, EEXIST));
  if (found == names_.end()) {
    if (auto stepped = step_or_fail("open", path); !stepped) return std::unexpected(stepped.error());
    change_name({path, std::make_shared<File>(), ""});
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
  if (dead_) return std::unexpected(system_error("map", path, EIO));
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
  return (*handle)->file->view.size();
}

Result<std::size_t> MemoryDisk::read(FileId file, std::uint64_t offset, std::span<std::byte> into) {
  auto handle = handle_of(file, "read");
  if (!handle) return std::unexpected(handle.error());
  if (dead_) return std::unexpected(system_error("read", (*handle)->path, EIO));
  if (auto aligned = check_direct(**handle, offset, into.size(), into.data()); !aligned)
    return std::unexpected(aligned.error());
  for (const auto& [path, bad] : unreadable_)
    if (path == (*handle)->path && bad >= offset && bad < offset + into.size())
      return std::unexpected(system_error(fmt::format("read {} bytes at {} of", into.size(), offset), path, EIO));
  const auto& view = (*handle)->file->view;
  if (offset >= view.size()) return 0;
  const std::size_t got = std::min<std::uint64_t>(into.size(), view.size() - offset);
  std::memcpy(into.data(), view.data() + offset, got);
  return got;
}

void MemoryDisk::apply(std::vector<std::byte>& content, const Change& change) {
  if (change.resize) return content.resize(change.offset);
  const std::size_t end = change.offset + change.bytes.size();
  if (content.size() < end) content.resize(end);
  std::memcpy(content.data() + change.offset, change.bytes.data(), change.bytes.size());
}

void MemoryDisk::keep_some_pieces(std::vector<std::byte>& content, const Change& change, std::mt19937_64& random) {
  if (change.resize) {
    if (random() & 1) content.resize(change.offset);
    return;
  }
  std::uint64_t coins = 0;
  for (std::size_t at = 0, n = 0; at < change.bytes.size(); at += device_piece_bytes, ++n, coins >>= 1) {
    if (n % 64 == 0) coins = random();
    if ((coins & 1) == 0) continue;
    const std::size_t length = std::min(device_piece_bytes, change.bytes.size() - at);
    if (content.size() < change.offset + at + length) content.resize(change.offset + at + length);
    std::memcpy(content.data() + change.offset + at, change.bytes.data() + at, length);
  }
}

std::vector<std::uint64_t> MemoryDisk::settled_changes(const File& file) {
  std::vector<std::uint64_t> numbers;
  for (const Change& change : file.changes)
    if (!change.in_flight && !change.abandoned) numbers.push_back(change.number);
  return numbers;
}

void MemoryDisk::make_durable(File& file, const std::vector<std::uint64_t>& numbers) {
  const auto covered = [&](const Change& change) { return std::ranges::binary_search(numbers, change.number); };
  for (const Change& change : file.changes)
    if (covered(change)) apply(file.durable, change);
  std::erase_if(file.changes, covered);
}

Result<void> MemoryDisk::write(FileId file, std::uint64_t offset, std::span<const std::byte> bytes) {
  auto handle = handle_of(file, "write");
  if (!handle) return std::unexpected(handle.error());
  if (auto aligned = check_direct(**handle, offset, bytes.size(), bytes.data()); !aligned) return aligned;
  File& target = *(*handle)->file;
  const bool was_dead = dead_;
  const auto fault = step();
  if (was_dead) return std::unexpected(fault_error("write", (*handle)->path));
  Change change{next_change_++, offset, {bytes.begin(), bytes.end()}, false, false, false};
  if (fault) {
    if (dead_) target.changes.push_back(std::move(change));
    return std::unexpected(fault_error(fmt::format("write {} bytes at {} of", bytes.size(), offset), (*handle)->path));
  }
  apply(target.view, change);
  target.changes.push_back(std::move(change));
  return {};
}

Result<void> MemoryDisk::sync(FileId file) {
  auto handle = handle_of(file, "sync");
  if (!handle) return std::unexpected(handle.error());
  if (auto stepped = step_or_fail("sync", (*handle)->path); !stepped) return stepped;
  make_durable(*(*handle)->file, settled_changes(*(*handle)->file));
  return {};
}

Result<void> MemoryDisk::sync_directory(const std::string& path) {
  if (auto stepped = step_or_fail("sync directory", path); !stepped) return stepped;
  const std::string directory = without_trailing_slash(path);
  const auto covered = [&](const NameChange& change) { return directory_of(change.path) == directory; };
  for (const NameChange& change : name_changes_) {
    if (!covered(change)) continue;
    if (!change.replaced.empty()) durable_names_.erase(change.replaced);
    if (change.file != nullptr) {
      durable_names_[change.path] = change.file;
    } else {
      durable_names_.erase(change.path);
    }
  }
  std::erase_if(name_changes_, covered);
  return {};
}

Result<void> MemoryDisk::zero_fill(FileId file, std::uint64_t bytes) {
  auto handle = handle_of(file, "zero-fill");
  if (!handle) return std::unexpected(handle.error());
  if (auto stepped = step_or_fail("zero-fill", (*handle)->path); !stepped) return stepped;
  if (bytes > free_bytes_) return std::unexpected(system_error("reserve space for", (*handle)->path, ENOSPC));
  free_bytes_ -= bytes;
  Change change{next_change_++, 0, std::vector<std::byte>(bytes), false, false, false};
  apply((*handle)->file->view, change);
  (*handle)->file->changes.push_back(std::move(change));
  return {};
}

Result<void> MemoryDisk::truncate(FileId file, std::uint64_t bytes) {
  auto handle = handle_of(file, "truncate");
  if (!handle) return std::unexpected(handle.error());
  if (auto stepped = step_or_fail("truncate", (*handle)->path); !stepped) return stepped;
  Change change{next_change_++, bytes, {}, true, false, false};
  apply((*handle)->file->view, change);
  (*handle)->file->changes.push_back(std::move(change));
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
  if (!names_.contains(path)) return std::unexpected(system_error("remove", path, ENOENT));
  if (auto stepped = step_or_fail("remove", path); !stepped) return stepped;
  change_name({path, nullptr, ""});
  return {};
}

Result<void> MemoryDisk::make_directory(const std::string& path) {
  if (dead_) return std::unexpected(system_error("create directory", path, EIO));
  for (std::string at = without_trailing_slash(path); directories_.insert(at).second;) at = directory_of(at);
  return {};
}

Result<std::vector<std::string>> MemoryDisk::list(const std::string& path) {
  const std::string directory = without_trailing_slash(path);
  if (!directories_.contains(directory)) return std::unexpected(system_error("list directory", path, ENOENT));
  std::vector<std::string> names;
  for (const auto& [name, file] : names_)
    if (directory_of(name) == directory) names.push_back(name.substr(directory.size() + 1));
  return names;
}

void MemoryDisk::submit_write(FileId file, std::uint64_t offset, std::span<const iovec> pieces, std::uint64_t token) {
  auto handle = handle_of(file, "write");
  LOCKSTEP_ASSERT(handle, "a write is submitted to an open file");
  Submission submission;
  submission.token = token;
  submission.file = (*handle)->file;
  submission.path = (*handle)->path;
  submission.pieces.assign(pieces.begin(), pieces.end());
  submission.change = next_change_++;
  Change change{submission.change, offset, {}, false, true, false};
  for (const iovec& piece : pieces) {
    LOCKSTEP_ASSERT(check_direct(**handle, offset, piece.iov_len, piece.iov_base), "direct writes are aligned");
    const auto* bytes = static_cast<const std::byte*>(piece.iov_base);
    change.bytes.insert(change.bytes.end(), bytes, bytes + piece.iov_len);
  }
  submission.file->changes.push_back(std::move(change));
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
  submission.buffered = (*handle)->buffered;
  submission.covered = settled_changes(*submission.file);
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
  if (dead_) return -EIO;
  auto& changes = submission.file->changes;
  const auto change = std::ranges::find(changes, submission.change, &Change::number);
  LOCKSTEP_ASSERT(change != changes.end(), "a write in flight is not covered by any sync");
  std::size_t at = 0;
  for (const iovec& piece : submission.pieces) {
    LOCKSTEP_ASSERT(std::memcmp(piece.iov_base, change->bytes.data() + at, piece.iov_len) == 0,
                    "bytes in flight are not changed");
    at += piece.iov_len;
  }
  const auto fault = step();
  if (dead_) return -EIO;
  change->in_flight = false;
  auto result = static_cast<std::int64_t>(change->bytes.size());
  if (fault == Fault::short_write) {
    change->bytes.resize(change->bytes.size() / 2);
    result = static_cast<std::int64_t>(change->bytes.size());
  }
  if (fault == Fault::error) {
    const Change attempted = std::move(*change);
    changes.erase(change);
    std::vector<std::byte> torn = submission.file->view;
    keep_some_pieces(torn, attempted, random_);
    const std::size_t end = std::min<std::size_t>(torn.size(), attempted.offset + attempted.bytes.size());
    Change rest{next_change_++, attempted.offset, {}, false, false, false};
    if (end > attempted.offset)
      rest.bytes.assign(torn.begin() + static_cast<std::ptrdiff_t>(attempted.offset),
                        torn.begin() + static_cast<std::ptrdiff_t>(end));
    apply(submission.file->view, rest);
    changes.push_back(std::move(rest));
    return -fault_errno_;
  }
  apply(submission.file->view, *change);
  return result;
}

std::int64_t MemoryDisk::complete_sync(const Submission& submission) {
  if (step()) {
    // The page cache forgets what it could not write; a device asked again to flush may still do it.
    if (submission.buffered)
      for (Change& change : submission.file->changes)
        if (std::ranges::binary_search(submission.covered, change.number)) change.abandoned = true;
    return dead_ || fault_errno_ == 0 ? -EIO : -fault_errno_;
  }
  make_durable(*submission.file, submission.covered);
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
  if (shuffled_ && !dead_) {
    std::ranges::shuffle(submitted_, random_);
    const auto kept = static_cast<std::ptrdiff_t>(submitted_.empty() ? 0 : random_() % submitted_.size());
    std::move(submitted_.begin() + kept, submitted_.end(), std::back_inserter(due));
    submitted_.erase(submitted_.begin() + kept, submitted_.end());
  } else {
    due.swap(submitted_);
  }
  for (Submission& submission : due) completed_.push_back({submission.token, complete(submission)});
  return completed_;
}

MemoryDisk MemoryDisk::after_power_cut(std::uint64_t seed) const {
  MemoryDisk after(seed);
  std::mt19937_64 random(seed);
  std::map<std::string, FilePointer> names = durable_names_;
  for (const NameChange& change : name_changes_) {
    if ((random() & 1) == 0) continue;
    if (!change.replaced.empty()) names.erase(change.replaced);
    if (change.file != nullptr) {
      names[change.path] = change.file;
    } else {
      names.erase(change.path);
    }
  }
  after.directories_ = directories_;
  for (const auto& [path, file] : names) {
    std::vector<std::byte> content = file->durable;
    for (const Change& change : file->changes) keep_some_pieces(content, change, random);
    after.put(path, std::move(content));
  }
  return after;
}

std::span<const std::byte> MemoryDisk::bytes(const std::string& path) const {
  const auto found = names_.find(path);
  LOCKSTEP_ASSERT(found != names_.end(), "a test looks at a file that is there");
  return found->second->view;
}

void MemoryDisk::overwrite(const std::string& path, std::uint64_t offset, std::span<const std::byte> bytes) {
  const auto found = names_.find(path);
  LOCKSTEP_ASSERT(found != names_.end(), "a test damages a file that is there");
  const Change damage{0, offset, {bytes.begin(), bytes.end()}, false, false, false};
  apply(found->second->view, damage);
  apply(found->second->durable, damage);
}

void MemoryDisk::put(const std::string& path, std::vector<std::byte> content) {
  auto file = std::make_shared<File>();
  file->durable = content;
  file->view = std::move(content);
  names_[path] = file;
  durable_names_[path] = file;
}

}  // namespace lockstep
