// SPDX-License-Identifier: Apache-2.0
#include "journal/snapshot_writer.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/assert.hpp"

namespace lockstep {
namespace {

constexpr std::size_t piece_bytes = std::size_t{1} << 20;

}  // namespace

Result<SnapshotWriter> SnapshotWriter::create(Disk& disk, const std::string& directory, std::uint64_t index) {
  const std::string path = directory + "/" + snapshot_name(index) + ".tmp";
  static_cast<void>(disk.remove(path));  // left by an attempt that a crash ended
  auto file = disk.open(path, OpenMode::create_direct);
  if (!file) return std::unexpected(file.error());
  return SnapshotWriter(disk, directory, index, *file);
}

SnapshotWriter::SnapshotWriter(Disk& disk, std::string directory, std::uint64_t index, FileId file)
    : disk_(&disk), directory_(std::move(directory)), index_(index), file_(file), buffer_(piece_bytes) {}

SnapshotWriter::SnapshotWriter(SnapshotWriter&& other) noexcept
    : disk_(other.disk_),
      directory_(std::move(other.directory_)),
      index_(other.index_),
      file_(std::exchange(other.file_, FileId::none)),
      buffer_(std::move(other.buffer_)),
      buffered_(other.buffered_),
      offset_(other.offset_),
      state_(std::move(other.state_)),
      shards_(std::move(other.shards_)),
      arenas_(std::move(other.arenas_)),
      arena_open_(other.arena_open_),
      digest_(other.digest_),
      verifier_(std::move(other.verifier_)) {}

SnapshotWriter::~SnapshotWriter() {
  if (file_ == FileId::none) return;
  verifier_.reset();
  disk_->close(file_);
  static_cast<void>(disk_->remove(temporary_path()));  // what stays is removed at the next start
}

std::string SnapshotWriter::temporary_path() const {
  return directory_ + "/" + snapshot_name(index_) + ".tmp";
}

void SnapshotWriter::begin_shard(const Digest& effects) {
  end_shard();
  shards_.push_back({effects, 0, 0});
}

void SnapshotWriter::begin_arena(std::uint32_t actor_type, std::uint64_t actor_key, std::uint64_t image_bytes) {
  end_arena();
  LOCKSTEP_ASSERT(!shards_.empty() && image_bytes > 0, "an arena of a snapshot has an image and belongs to a shard");
  ++shards_.back().arenas;
  arenas_.push_back({actor_type, 0, actor_key, image_bytes, 0, {}});
  state_.begin_arena(image_bytes);
  arena_open_ = true;
}

Result<void> SnapshotWriter::add_pages(std::span<const std::byte> pages) {
  state_.add_pages(pages);
  return put(pages);
}

void SnapshotWriter::end_arena() {
  if (std::exchange(arena_open_, false)) arenas_.back().digest = state_.end_arena();
}

void SnapshotWriter::end_shard() {
  end_arena();
  if (!shards_.empty()) state_.end_shard();
}

Result<void> SnapshotWriter::put(std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const std::size_t taken = std::min(bytes.size(), buffer_.size() - buffered_);
    std::memcpy(buffer_.data() + buffered_, bytes.data(), taken);
    buffered_ += taken;
    bytes = bytes.subspan(taken);
    if (buffered_ < buffer_.size()) break;
    if (auto flushed = flush(); !flushed) return flushed;
  }
  return {};
}

Result<void> SnapshotWriter::flush() {
  const std::size_t bytes = round_up_to_block(buffered_);
  std::memset(buffer_.data() + buffered_, 0, bytes - buffered_);
  buffered_ = 0;
  if (bytes == 0) return {};
  auto written = disk_->write(file_, offset_, buffer_.span().first(bytes));
  offset_ += bytes;
  return written;
}

Result<void> SnapshotWriter::seal(SnapshotHeader header) {
  end_shard();
  std::vector<Digest> effects;
  effects.reserve(shards_.size());
  for (const SnapshotShard& shard : shards_) effects.push_back(shard.effects);
  const Digest root =
      state_root(xxh3_128(std::as_bytes(std::span(header.genesis)).first(header.genesis_bytes)), state_.shards());
  if (root != header.root || effects_root(effects) != header.effects)
    return fail(
        ErrorCode::diverged,
        fmt::format("the snapshot of batch {} came to root {} effects {}, and its checkpoint to root {} effects "
                    "{}: memory of this process was changed outside of handlers",
                    index_, root.hex(), effects_root(effects).hex(), header.root.hex(), header.effects.hex()));
  if (auto flushed = flush(); !flushed) return flushed;
  header.index = index_;
  header.image_bytes = offset_ - disk_block_bytes;
  header.shard_count = static_cast<std::uint32_t>(shards_.size());
  header.arena_count = arenas_.size();
  header.table_bytes = shards_.size() * sizeof(SnapshotShard) + arenas_.size() * sizeof(SnapshotArena);
  std::vector<std::byte> table(header.table_bytes);
  const auto shard_bytes = std::as_bytes(std::span(shards_));
  const auto arena_bytes = std::as_bytes(std::span(arenas_));
  std::ranges::copy(shard_bytes, table.begin());
  std::ranges::copy(arena_bytes, table.begin() + static_cast<std::ptrdiff_t>(shard_bytes.size()));
  header.total_bytes = offset_ + round_up_to_block(table.size()) + disk_block_bytes;
  header.checksum = page_checksum(header);
  SnapshotFooter footer;
  footer.header_checksum = header.checksum;
  footer.table_digest = xxh3_128(table);
  footer.total_bytes = header.total_bytes;
  footer.checksum = digest_ = page_checksum(footer);

  auto written = put(table);
  if (written) written = flush();
  if (written) written = put(object_bytes(footer));
  if (written) written = flush();
  if (!written) return written;
  std::memcpy(buffer_.data(), &header, sizeof header);
  written = disk_->write(file_, 0, buffer_.span().first(sizeof header));
  if (written) written = disk_->sync(file_);
  return written;
}

Result<bool> SnapshotWriter::verify() {
  if (!verifier_) {
    auto reader = SnapshotReader::open(*disk_, temporary_path(), OpenMode::write_direct);
    if (!reader) return std::unexpected(reader.error());
    verifier_.emplace(std::move(*reader));
  }
  return verifier_->step();
}

Result<void> SnapshotWriter::publish() {
  const std::string path = directory_ + "/" + snapshot_name(index_);
  verifier_.reset();
  disk_->close(std::exchange(file_, FileId::none));
  auto done = disk_->rename(temporary_path(), path);
  if (done) done = disk_->sync_directory(directory_);
  return done;
}

}  // namespace lockstep
