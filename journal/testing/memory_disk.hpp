// SPDX-License-Identifier: Apache-2.0
#pragma once

/// MemoryDisk: a Disk in memory that forgets what a real one may forget. What was written but not synced survives a
/// power cut by random 512-byte pieces; a name that was made, renamed or removed survives only by chance until its
/// directory is synced; what is in flight may be on the medium or not. Faults are put at the n-th operation. All chance
/// is drawn from one seed, so a run can be repeated.
///
/// Directories themselves are durable at once. Time does not pass: submitted calls complete at poll(), all in order,
/// or some in random order after shuffle_completions(). One thread.

#include <map>
#include <memory>
#include <optional>
#include <random>
#include <set>

#include "journal/disk.hpp"

namespace lockstep {

class MemoryDisk final : public Disk {
 public:
  explicit MemoryDisk(std::uint64_t seed = 1) : random_(seed) {}

  enum class Fault {
    error,        ///< the operation fails with an errno; a write leaves some of its pieces
    short_write,  ///< a submitted write completes with half its bytes; any other operation fails
    power_cut,    ///< this and everything afterwards fails; the medium holds what after_power_cut() draws
  };
  /// Puts a fault at the n-th operation that changes something from now on (1 is the next one).
  void fail_at(std::uint64_t nth, Fault fault, int error);
  /// Operations that change something so far: writes, syncs, zero_fill, truncate, create, rename, remove.
  [[nodiscard]] std::uint64_t operations() const { return operations_; }
  /// Submitted calls that poll() has not completed.
  [[nodiscard]] std::size_t in_flight() const { return submitted_.size(); }
  /// Reads that touch this byte fail with EIO.
  void make_unreadable(const std::string& path, std::uint64_t offset) { unreadable_.insert({path, offset}); }
  /// Lets zero_fill take no more than this many bytes from now on: then ENOSPC.
  void set_free_bytes(std::uint64_t bytes) { free_bytes_ = bytes; }
  /// From now on poll() completes a random part of what is submitted, in random order.
  void shuffle_completions() { shuffled_ = true; }

  /// A disk with what a power cut now might leave; locks and open files are gone.
  [[nodiscard]] MemoryDisk after_power_cut(std::uint64_t seed) const;
  /// A file's bytes as they are read.
  [[nodiscard]] std::span<const std::byte> bytes(const std::string& path) const;
  /// Damages a file: these bytes are read, and durable, from now on.
  void overwrite(const std::string& path, std::uint64_t offset, std::span<const std::byte> bytes);
  /// Sets a file's size and bytes, durable; makes it if there is none.
  void put(const std::string& path, std::vector<std::byte> content);

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
  /// A write, or a change of size (no bytes), that no sync has covered.
  struct Change {
    std::uint64_t number = 0;
    std::uint64_t offset = 0;  ///< or the new size
    std::vector<std::byte> bytes;
    bool resize = false;
    bool in_flight = false;
    bool abandoned = false;  ///< a sync of it failed: a later one does not cover it
  };
  struct File {
    std::vector<std::byte> view;     ///< what a read sees
    std::vector<std::byte> durable;  ///< what is surely on the medium
    std::vector<Change> changes;
  };
  using FilePointer = std::shared_ptr<File>;
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
    bool buffered = false;
    std::uint64_t change = 0;            ///< of a write
    std::vector<iovec> pieces;           ///< of a write: must not change until it completes
    std::vector<std::uint64_t> covered;  ///< changes a sync covers
    std::function<Result<void>(Disk&)> work;
  };

  [[nodiscard]] Result<Handle*> handle_of(FileId file, const char* operation);
  [[nodiscard]] Result<void> check_direct(const Handle& handle, std::uint64_t offset, std::size_t bytes,
                                          const void* address) const;
  /// Counts an operation; the fault it meets, if any.
  [[nodiscard]] std::optional<Fault> step();
  [[nodiscard]] Result<void> step_or_fail(const std::string& operation, const std::string& path);
  [[nodiscard]] Error fault_error(const std::string& operation, const std::string& path) const;
  FileId add_handle(Handle handle);
  void change_name(NameChange change);

  [[nodiscard]] std::int64_t complete(Submission& submission);
  [[nodiscard]] std::int64_t complete_write(Submission& submission);
  [[nodiscard]] std::int64_t complete_sync(const Submission& submission);

  static void apply(std::vector<std::byte>& content, const Change& change);
  static void make_durable(File& file, const std::vector<std::uint64_t>& numbers);
  static std::vector<std::uint64_t> settled_changes(const File& file);
  static void keep_some_pieces(std::vector<std::byte>& content, const Change& change, std::mt19937_64& random);

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
  std::uint64_t next_change_ = 1;

  std::uint64_t operations_ = 0;
  std::uint64_t fault_at_ = 0;
  Fault fault_ = Fault::error;
  int fault_errno_ = 0;
  bool dead_ = false;
  std::set<std::pair<std::string, std::uint64_t>> unreadable_;
  std::uint64_t free_bytes_ = UINT64_MAX;
};

}  // namespace lockstep
