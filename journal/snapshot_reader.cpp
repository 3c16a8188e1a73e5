// SPDX-License-Identifier: Apache-2.0
#include "journal/snapshot_reader.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "journal/block.hpp"

namespace lockstep {
namespace {

constexpr std::size_t piece_bytes = std::size_t{1} << 20;

template <class T>
bool zeroes(const T& reserved) {
  return all_zero(std::as_bytes(std::span(reserved)));
}

/// A version, flag or reserved byte that this program does not know.
bool is_newer(const SnapshotHeader& header, const SnapshotFooter& footer) {
  return header.version != snapshot_version || header.flags != 0 || !zeroes(header.zero) ||
         footer.version != snapshot_version || footer.flags != 0 || !zeroes(footer.zero);
}

}  // namespace

Result<SnapshotReader> SnapshotReader::open(Disk& disk, const std::string& path, OpenMode mode) {
  auto file = disk.open(path, mode);
  if (!file) return std::unexpected(file.error());
  SnapshotReader reader(disk, path, *file);
  reader.buffer_ = AlignedBuffer(disk_block_bytes);
  if (auto checked = reader.read_ends(); !checked) return std::unexpected(checked.error());
  if (auto checked = reader.read_table(); !checked) return std::unexpected(checked.error());
  reader.buffer_ = AlignedBuffer(std::min<std::uint64_t>(piece_bytes, reader.header_.image_bytes));
  return reader;
}

SnapshotReader::SnapshotReader(SnapshotReader&& other) noexcept
    : disk_(other.disk_),
      path_(std::move(other.path_)),
      file_(std::exchange(other.file_, FileId::none)),
      header_(other.header_),
      footer_(other.footer_),
      digest_(other.digest_),
      shards_(std::move(other.shards_)),
      arenas_(std::move(other.arenas_)),
      buffer_(std::move(other.buffer_)),
      buffered_until_(other.buffered_until_),
      buffered_(other.buffered_) {}

SnapshotReader::~SnapshotReader() {
  if (file_ != FileId::none) disk_->close(file_);
}

std::unexpected<Error> SnapshotReader::damaged(const std::string& what) const {
  return fail(ErrorCode::corrupt, fmt::format("{}: {}; the snapshot cannot be used", path_, what));
}

Result<void> SnapshotReader::read_at(std::uint64_t offset, std::span<std::byte> into) {
  const auto got = disk_->read(file_, offset, into);
  if (!got) return std::unexpected(got.error());
  if (*got != into.size()) return damaged(fmt::format("it ends at offset {}", offset + *got));
  return {};
}

Result<void> SnapshotReader::read_ends() {
  const auto bytes = disk_->size(file_);
  if (!bytes) return std::unexpected(bytes.error());
  if (*bytes < 3 * disk_block_bytes || *bytes % disk_block_bytes != 0)
    return damaged(fmt::format("{} bytes are not the size of a whole snapshot", *bytes));
  const auto page = buffer_.span().first(disk_block_bytes);
  if (auto read = read_at(0, page); !read) return read;
  std::memcpy(&header_, page.data(), sizeof header_);
  if (auto read = read_at(*bytes - disk_block_bytes, page); !read) return read;
  std::memcpy(&footer_, page.data(), sizeof footer_);
  digest_ = footer_.checksum;
  if (footer_.magic != snapshot_end_magic || footer_.checksum != page_checksum(footer_))
    return damaged("its last page is no snapshot's footer");
  if (header_.magic != snapshot_magic || header_.checksum != page_checksum(header_))
    return damaged("its first page is no snapshot's header");
  if (is_newer(header_, footer_))
    return fail(ErrorCode::incompatible, fmt::format("{} was written by a newer version of lockstep", path_));
  if (header_.endian != endian_marker || footer_.endian != endian_marker) return damaged("its byte order is unknown");
  if (footer_.header_checksum != header_.checksum) return damaged("header and footer are not of one snapshot");
  if (header_.total_bytes != *bytes || footer_.total_bytes != *bytes)
    return damaged(fmt::format("it has {} bytes instead of {}", *bytes, header_.total_bytes));
  return {};
}

Result<void> SnapshotReader::read_table() {
  const std::uint64_t body = header_.total_bytes - 2 * disk_block_bytes;
  if (header_.shard_count == 0 || header_.shard_count > snapshot_shards_limit ||
      header_.genesis_bytes > snapshot_genesis_bytes || header_.image_bytes > body ||
      header_.image_bytes % disk_block_bytes != 0 || header_.table_bytes > body - header_.image_bytes ||
      round_up_to_block(header_.table_bytes) != body - header_.image_bytes ||
      header_.arena_count > header_.table_bytes / sizeof(SnapshotArena) ||
      header_.shard_count * sizeof(SnapshotShard) + header_.arena_count * sizeof(SnapshotArena) != header_.table_bytes)
    return damaged("its header's counts and lengths do not fit each other");
  if (!all_zero(std::as_bytes(std::span(header_.genesis)).subspan(header_.genesis_bytes)))
    return damaged("there is something behind its genesis");
  AlignedBuffer table(header_.table_bytes);
  if (auto read = read_at(disk_block_bytes + header_.image_bytes, table.span()); !read) return read;
  if (xxh3_128(table.span().first(header_.table_bytes)) != footer_.table_digest ||
      !all_zero(table.span().subspan(header_.table_bytes)))
    return damaged("its table is damaged");
  shards_.resize(header_.shard_count);
  arenas_.resize(header_.arena_count);
  std::memcpy(shards_.data(), table.data(), shards_.size() * sizeof(SnapshotShard));
  std::memcpy(arenas_.data(), table.data() + shards_.size() * sizeof(SnapshotShard),
              arenas_.size() * sizeof(SnapshotArena));
  std::uint64_t arenas = 0;
  std::uint64_t images = 0;
  for (const SnapshotShard& shard : shards_) {
    if (shard.arenas == 0 || shard.arenas > arenas_.size() - arenas || shard.zero != 0)
      return damaged("its table's shards do not fit its arenas");
    arenas += shard.arenas;
  }
  for (const SnapshotArena& arena : arenas_) {
    if (arena.image_bytes == 0 || arena.image_bytes > header_.image_bytes - images || arena.zero0 != 0 ||
        arena.zero1 != 0)
      return damaged("its table's arenas do not fit its images");
    images += round_up_to_block(arena.image_bytes);
  }
  if (arenas != arenas_.size() || images != header_.image_bytes) return damaged("its table does not fit its images");
  return {};
}

Result<std::span<const std::byte>> SnapshotReader::next(std::uint64_t most) {
  if (buffered_.empty() && buffered_until_ < header_.image_bytes) {
    const auto into =
        buffer_.span().first(std::min<std::uint64_t>(buffer_.size(), header_.image_bytes - buffered_until_));
    if (auto read = read_at(disk_block_bytes + buffered_until_, into); !read) return std::unexpected(read.error());
    buffered_until_ += into.size();
    buffered_ = into;
  }
  const auto handed_out = buffered_.first(std::min<std::uint64_t>(most, buffered_.size()));
  buffered_ = buffered_.subspan(handed_out.size());
  return handed_out;
}

Result<void> SnapshotReader::read_image(std::span<std::byte> into) {
  std::uint64_t left = round_up_to_block(into.size());
  while (left > 0) {
    const auto bytes = next(left);
    if (!bytes) return std::unexpected(bytes.error());
    if (bytes->empty()) return damaged("it has fewer images than were asked for");
    for (std::size_t at = 0; at < bytes->size(); at += disk_block_bytes) {
      const auto page = bytes->subspan(at, std::min(disk_block_bytes, into.size()));
      if (!all_zero(page)) std::memcpy(into.data(), page.data(), page.size());
      into = into.subspan(page.size());
    }
    left -= bytes->size();
  }
  return {};
}

std::unexpected<Error> SnapshotVerifier::damaged(const std::string& what) const {
  return fail(ErrorCode::corrupt, fmt::format("{}: {}; the snapshot cannot be used", reader_.path(), what));
}

Result<bool> SnapshotVerifier::step() {
  const auto& arenas = reader_.arenas();
  for (std::uint64_t left = piece_bytes; left > 0;) {
    if (state_.left_bytes() == 0) {
      if (std::exchange(started_, true))
        if (auto ended = end_arena(); !ended) return std::unexpected(ended.error());
      if (arena_ == arenas.size()) {
        if (auto ended = end_shards(); !ended) return std::unexpected(ended.error());
        return true;
      }
      if (arenas_left_ == 0) arenas_left_ = reader_.shards()[shard_].arenas;
      state_.begin_arena(arenas[arena_].image_bytes);
    }
    const auto pages = reader_.next(std::min<std::uint64_t>(left, round_up_to_block(state_.left_bytes())));
    if (!pages) return std::unexpected(pages.error());
    if (auto taken = take(*pages); !taken) return std::unexpected(taken.error());
    left -= pages->size();
  }
  return false;
}

Result<void> SnapshotVerifier::take(std::span<const std::byte> pages) {
  const std::uint64_t in_image = std::min<std::uint64_t>(pages.size(), state_.left_bytes());
  if (!all_zero(pages.subspan(in_image))) return damaged(fmt::format("there is something behind image {}", arena_));
  state_.add_pages(pages);
  read_ += pages.size();
  return {};
}

Result<void> SnapshotVerifier::end_arena() {
  if (state_.end_arena() != reader_.arenas()[arena_].digest)
    return damaged(fmt::format("image {} is not what its table says", arena_));
  ++arena_;
  if (--arenas_left_ == 0) {
    state_.end_shard();
    ++shard_;
  }
  return {};
}

Result<void> SnapshotVerifier::end_shards() {
  std::vector<Digest> effects;
  for (const SnapshotShard& shard : reader_.shards()) effects.push_back(shard.effects);
  if (state_root(xxh3_128(reader_.genesis()), state_.shards()) != reader_.header().root)
    return damaged("its images do not have its state root");
  if (effects_root(effects) != reader_.header().effects) return damaged("its effects are not those of its shards");
  return {};
}

Result<void> verify_snapshot(Disk& disk, const std::string& path) {
  auto reader = SnapshotReader::open(disk, path);
  if (!reader) return std::unexpected(reader.error());
  SnapshotVerifier verifier(std::move(*reader));
  for (;;) {
    const auto done = verifier.step();
    if (!done) return std::unexpected(done.error());
    if (*done) return {};
  }
}

}  // namespace lockstep
