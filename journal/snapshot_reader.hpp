// SPDX-License-Identifier: Apache-2.0
#pragma once

/// Reading a snapshot. SnapshotReader::open() checks size, header, footer and table, so what it says about lengths and
/// counts may be used; the images then come in order. SnapshotVerifier reads all of them and holds their state root
/// against the header's: only then is a snapshot what it says, so verify first and restore in a second pass.
///
/// Nothing is written and no lock is taken. An Error of ErrorCode::corrupt says where the file is damaged, of
/// `incompatible` that a newer version wrote it. One thread.

#include <span>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "base/state_digest.hpp"
#include "journal/disk.hpp"
#include "journal/snapshot_format.hpp"

namespace lockstep {

class SnapshotReader {
 public:
  /// `mode` is read or write_direct: through the page cache or past it.
  [[nodiscard]] static Result<SnapshotReader> open(Disk& disk, const std::string& path, OpenMode mode = OpenMode::read);
  SnapshotReader(SnapshotReader&& other) noexcept;
  SnapshotReader& operator=(SnapshotReader&&) = delete;
  ~SnapshotReader();

  [[nodiscard]] const std::string& path() const { return path_; }
  [[nodiscard]] const SnapshotHeader& header() const { return header_; }
  /// What names the snapshot's bytes: its footer's checksum.
  [[nodiscard]] const Digest& digest() const { return digest_; }
  [[nodiscard]] std::span<const std::byte> genesis() const {
    return std::as_bytes(std::span(header_.genesis)).first(header_.genesis_bytes);
  }
  [[nodiscard]] const std::vector<SnapshotShard>& shards() const { return shards_; }
  [[nodiscard]] const std::vector<SnapshotArena>& arenas() const { return arenas_; }

  /// The next bytes of the images, padding included, up to `most` and up to the end of what one read brought; empty at
  /// the end. Valid until the next call.
  [[nodiscard]] Result<std::span<const std::byte>> next(std::uint64_t most);
  /// The next image, of `into.size()` bytes, and past its padding. `into` holds zeroes: pages of zeroes are not
  /// written, so that memory is taken only where the image needs it.
  [[nodiscard]] Result<void> read_image(std::span<std::byte> into);

 private:
  SnapshotReader(Disk& disk, std::string path, FileId file) : disk_(&disk), path_(std::move(path)), file_(file) {}

  [[nodiscard]] Result<void> read_ends();
  [[nodiscard]] Result<void> read_table();
  [[nodiscard]] Result<void> read_at(std::uint64_t offset, std::span<std::byte> into);
  [[nodiscard]] std::unexpected<Error> damaged(const std::string& what) const;

  Disk* disk_;
  std::string path_;
  FileId file_;
  SnapshotHeader header_;
  SnapshotFooter footer_;
  Digest digest_;
  std::vector<SnapshotShard> shards_;
  std::vector<SnapshotArena> arenas_;
  AlignedBuffer buffer_;
  std::uint64_t buffered_until_ = 0;     // image bytes read
  std::span<const std::byte> buffered_;  // of them, not handed out yet
};

class SnapshotVerifier {
 public:
  explicit SnapshotVerifier(SnapshotReader&& reader) : reader_(std::move(reader)) {}
  /// Reads and hashes up to 1 MiB more; true once everything was read and is as the header says.
  [[nodiscard]] Result<bool> step();
  [[nodiscard]] const SnapshotReader& reader() const { return reader_; }
  [[nodiscard]] std::uint64_t read_bytes() const { return read_; }

 private:
  [[nodiscard]] Result<void> take(std::span<const std::byte> pages);
  [[nodiscard]] Result<void> end_arena();
  [[nodiscard]] Result<void> end_shards();
  [[nodiscard]] std::unexpected<Error> damaged(const std::string& what) const;

  SnapshotReader reader_;
  StateDigest state_;
  std::uint64_t read_ = 0;
  std::size_t arena_ = 0;  // the one being read
  std::size_t shard_ = 0;
  std::uint64_t arenas_left_ = 0;  // of shard_, not read yet
  bool started_ = false;
};

/// All of SnapshotVerifier at once.
[[nodiscard]] Result<void> verify_snapshot(Disk& disk, const std::string& path);

}  // namespace lockstep
