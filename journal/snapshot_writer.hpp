// SPDX-License-Identifier: Apache-2.0
#pragma once

/// SnapshotWriter: writes a snapshot as its images come by, in large aligned writes past the page cache, and hashes
/// them on the way; so it knows the state root of what it wrote without another pass. The file is `*.tmp` until it has
/// been made durable, read back from the medium and found to be what was meant; then it gets its name, durably.
///
///     begin_shard → (begin_arena → add_pages …) … → … → seal → verify until true → publish
///
/// Each call but seal() writes or reads at most 1 MiB more than it is given. An Error ends the attempt; a writer
/// that is destroyed before publish() removes its file. Blocking calls of the Disk only; one thread at a time.

#include <optional>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "base/state_digest.hpp"
#include "journal/disk.hpp"
#include "journal/snapshot_format.hpp"
#include "journal/snapshot_reader.hpp"

namespace lockstep {

class SnapshotWriter {
 public:
  /// Makes `snap-*.snp.tmp`, over one that an earlier attempt may have left.
  [[nodiscard]] static Result<SnapshotWriter> create(Disk& disk, const std::string& directory, std::uint64_t index);
  SnapshotWriter(SnapshotWriter&& other) noexcept;
  SnapshotWriter& operator=(SnapshotWriter&&) = delete;
  ~SnapshotWriter();

  void begin_shard(const Digest& effects);
  /// `image_bytes` above 0.
  void begin_arena(std::uint32_t actor_type, std::uint64_t actor_key, std::uint64_t image_bytes);
  /// The next whole pages of the arena; zero beyond the image.
  [[nodiscard]] Result<void> add_pages(std::span<const std::byte> pages);

  /// After the last page: writes table, footer and header, and makes all durable. Of `header`, cluster, position, root,
  /// effects and genesis are the caller's; ErrorCode::diverged when what was written has another root or effects.
  [[nodiscard]] Result<void> seal(SnapshotHeader header);
  /// Reads back up to 1 MiB; true when all of it has been read and verified.
  [[nodiscard]] Result<bool> verify();
  /// Gives the file its name and makes that durable.
  [[nodiscard]] Result<void> publish();

  /// After seal(): what names this snapshot's bytes.
  [[nodiscard]] const Digest& digest() const { return digest_; }
  [[nodiscard]] std::uint64_t written_bytes() const { return offset_; }

 private:
  SnapshotWriter(Disk& disk, std::string directory, std::uint64_t index, FileId file);

  [[nodiscard]] std::string temporary_path() const;
  void end_arena();
  void end_shard();
  [[nodiscard]] Result<void> put(std::span<const std::byte> bytes);
  [[nodiscard]] Result<void> flush();

  Disk* disk_;
  std::string directory_;
  std::uint64_t index_;
  FileId file_;
  AlignedBuffer buffer_;
  std::size_t buffered_ = 0;
  std::uint64_t offset_ = disk_block_bytes;  // of the buffer's start in the file
  StateDigest state_;
  std::vector<SnapshotShard> shards_;
  std::vector<SnapshotArena> arenas_;
  bool arena_open_ = false;
  Digest digest_;
  std::optional<SnapshotVerifier> verifier_;
};

}  // namespace lockstep
