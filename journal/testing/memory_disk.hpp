// SPDX-License-Identifier: Apache-2.0
#pragma once

/// MemoryDisk: a Disk in memory that forgets what a real one may forget, and lies as a real one may lie. What was
/// written but not synced survives a power cut by 512-byte pieces (journal/testing/memory_file.hpp); a name that was
/// made, renamed or removed survives only by chance until its directory is synced; what is in flight may be on the
/// medium or not. Which pieces survive is drawn from a seed, or chosen one by one, so that all outcomes can be gone
/// through. Faults are put at the n-th operation (journal/testing/disk_faults.hpp). All chance is drawn from one seed,
/// so a run can be repeated.
///
/// Directories themselves are durable at once. Time does not pass: submitted calls complete at poll(), all in order,
/// or some in random order after shuffle_completions(), or a given number after complete_only(). That the bytes of a
/// submitted write do not change before it completes is asserted. One thread.

#include <map>
#include <memory>
#include <optional>
#include <random>
#include <set>

#include "journal/disk.hpp"
#include "journal/testing/disk_faults.hpp"
#include "journal/testing/memory_file.hpp"

namespace lockstep {

class MemoryDisk final : public Disk {
 public:
  using Fault = DiskFault;
  explicit MemoryDisk(std::uint64_t seed = 1) : random_(seed) {}

  /// Puts a fault at the n-th operation that changes something from now on (1 is the next one).
  void fail_at(std::uint64_t nth, Fault fault, int error) { faults_.at(nth, {fault, error}); }
  /// Operations that change something so far: writes, syncs, zero_fill, truncate, create, rename, remove.
  [[nodiscard]] std::uint64_t operations() const { return faults_.operations(); }
  [[nodiscard]] DiskFaults& faults() { return faults_; }
  /// Submitted calls that poll() has not completed.
  [[nodiscard]] std::size_t in_flight() const { return submitted_.size(); }
  /// Reads that touch this byte fail with EIO.
  void make_unreadable(const std::string& path, std::uint64_t offset) { faults_.make_unreadable(path, offset); }
  /// Lets files grow by no more than this many bytes from now on: then ENOSPC. What is removed or cut off is free
  /// again.
  void set_free_bytes(std::uint64_t bytes) { free_bytes_ = bytes; }
  /// From now on poll() completes a random part of what is submitted, in random order.
  void shuffle_completions() { shuffled_ = true; }
  /// From now on poll() completes no more than this many submitted calls in all: 0 is a disk that has stopped.
  void complete_only(std::uint64_t calls) { completions_left_ = calls; }

  /// A disk with what a power cut now might leave; locks and open files are gone.
  [[nodiscard]] MemoryDisk after_power_cut(std::uint64_t seed) const;
  /// The questions a power cut now leaves open, writes taken apart into pieces of this size: each step on names, then
  /// each piece, file by file.
  [[nodiscard]] std::size_t questions(std::size_t piece_bytes = device_piece_bytes) const;
  /// The disk a power cut leaves with these answers.
  [[nodiscard]] MemoryDisk after_power_cut(const Survival& survives,
                                           std::size_t piece_bytes = device_piece_bytes) const;
  /// A disk with the same files as they are read here, all durable: what a killed process leaves, without its handles.
  [[nodiscard]] MemoryDisk copy() const;
  /// True when the other disk has the same files with the same bytes, as they are read.
  [[nodiscard]] bool has_files_of(const MemoryDisk& other) const;

  /// A file's bytes as they are read.
  [[nodiscard]] std::span<const std::byte> bytes(const std::string& path) const;
  /// Damages a file: these bytes are read, and durable, from now on.
  void overwrite(const std::string& path, std::uint64_t offset, std::span<const std::byte> bytes);
  /// Damages one bit of a file, counted from its start.
  void flip_bit(const std::string& path, std::uint64_t bit);
  /// Sets a file's size and bytes, durable; makes it if there is none.
  void put(const std::string& path, std::vector<std::byte> content) {
    put_shared(path, SharedBytes(std::move(content)));
  }

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
  Result<std::shared_ptr<std::byte[]>> map_shared(const std::string& path, std::size_t bytes) override;
  Result<void> lock(FileId file) override;
  Result<FileId> open_directory(const std::string& path) override;

  void submit_write(FileId file, std::uint64_t offset, std::span<const iovec> pieces, std::uint64_t token) override;
  void submit_sync(FileId file, std::uint64_t token) override;
  void submit_background(std::function<Result<void>(Disk&)> work, std::uint64_t token) override;
  std::span<const DiskCompletion> poll() override;

 private:
  using FilePointer = std::shared_ptr<MemoryFile>;
  /// A step on names that no sync of their directory has covered: `path` names `file`, or nothing.
  struct NameChange {
    std::string path;
    FilePointer file;
    std::string replaced;  ///< a rename's old name, gone with the same step
  };
  struct Handle {
    FilePointer file;  ///< none for a directory
    std::string path;
    bool direct = false;
    bool buffered = false;
  };
  struct Submission {
    enum class Kind { write, sync, background } kind = Kind::write;
    std::uint64_t token = 0;
    FilePointer file;
    std::string path;
    std::uint64_t offset = 0;
    std::uint64_t change = 0;            ///< of a write
    std::vector<iovec> pieces;           ///< of a write: must not change until it completes
    std::vector<std::uint64_t> covered;  ///< changes a sync covers
    std::function<Result<void>(Disk&)> work;
  };

  [[nodiscard]] Result<Handle*> handle_of(FileId file, const char* operation);
  [[nodiscard]] Result<void> check_direct(const Handle& handle, std::uint64_t offset, std::size_t bytes,
                                          const void* address) const;
  [[nodiscard]] Result<void> step_or_fail(const std::string& operation, const std::string& path);
  FileId add_handle(Handle handle);
  void put_shared(const std::string& path, SharedBytes content);
  void change_name(NameChange change);
  static void apply(std::map<std::string, FilePointer>& names, const NameChange& change);
  /// Files a power cut may leave, each once.
  [[nodiscard]] std::vector<FilePointer> files() const;
  /// Takes free space for a file to reach this size; false when there is not enough.
  [[nodiscard]] bool reserve(const MemoryFile& file, std::uint64_t bytes);
  void release(std::uint64_t bytes);
  void misdirect(const MemoryFile* meant, std::uint64_t offset, std::span<const std::byte> bytes);

  [[nodiscard]] std::int64_t complete(Submission& submission);
  [[nodiscard]] std::int64_t complete_write(Submission& submission);
  [[nodiscard]] std::int64_t complete_sync(const Submission& submission);

  std::mt19937_64 random_;
  std::map<std::string, FilePointer> names_;
  std::map<std::string, FilePointer> durable_names_;
  std::vector<NameChange> name_changes_;
  std::set<std::string> directories_;
  std::map<std::int32_t, Handle> handles_;
  std::map<std::string, std::pair<std::size_t, std::shared_ptr<std::byte[]>>> shared_;  // gone after a power cut
  std::set<const void*> locked_files_;
  std::map<std::int32_t, const void*> locks_;
  std::map<std::string, std::shared_ptr<int>> directory_identity_;
  std::int32_t next_handle_ = 1;

  std::vector<Submission> submitted_;
  std::vector<DiskCompletion> completed_;
  bool shuffled_ = false;
  std::uint64_t completions_left_ = UINT64_MAX;

  DiskFaults faults_;
  std::uint64_t free_bytes_ = UINT64_MAX;
};

}  // namespace lockstep
