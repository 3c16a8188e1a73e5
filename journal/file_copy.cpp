// SPDX-License-Identifier: Apache-2.0
#include "journal/file_copy.hpp"

#include <cstring>

#include "journal/aligned_buffer.hpp"

namespace lockstep {
namespace {

constexpr std::size_t copy_piece_bytes = std::size_t{1} << 20;

}  // namespace

Result<void> copy_file(Disk& disk, const std::string& from, const std::string& directory, const std::string& name) {
  const std::string copy_path = directory + "/" + name;
  static_cast<void>(disk.remove(copy_path));  // left by an attempt that did not get further
  auto source = disk.open(from, OpenMode::read);
  if (!source) return std::unexpected(source.error());
  auto to = disk.open(copy_path, OpenMode::create_direct);
  Result<void> result;
  if (!to) result = std::unexpected(to.error());
  AlignedBuffer piece(copy_piece_bytes);
  std::uint64_t offset = 0;
  while (result) {
    const auto got = disk.read(*source, offset, piece.span());
    if (!got) result = std::unexpected(got.error());
    if (!got || *got == 0) break;
    std::memset(piece.data() + *got, 0, piece.size() - *got);
    result = disk.write(*to, offset, piece.span().first(round_up_to_block(*got)));
    offset += *got;
  }
  if (result) result = disk.truncate(*to, offset);
  if (result) result = disk.sync(*to);
  if (result) result = disk.sync_directory(directory);
  disk.close(*source);
  if (to) disk.close(*to);
  if (!result) static_cast<void>(disk.remove(copy_path));  // a part of a copy only takes space
  return result;
}

Result<bool> same_content(Disk& disk, const std::string& one, const std::string& other) {
  auto first = disk.open(one, OpenMode::read);
  if (!first) return std::unexpected(first.error());
  auto second = disk.open(other, OpenMode::read);
  if (!second) {
    disk.close(*first);
    return std::unexpected(second.error());
  }
  AlignedBuffer left(copy_piece_bytes);
  AlignedBuffer right(copy_piece_bytes);
  Result<bool> same = true;
  for (std::uint64_t offset = 0; same && *same; offset += left.size()) {
    const auto got_left = disk.read(*first, offset, left.span());
    const auto got_right = disk.read(*second, offset, right.span());
    if (!got_left || !got_right) {
      same = std::unexpected(!got_left ? got_left.error() : got_right.error());
    } else {
      same = *got_left == *got_right && std::memcmp(left.data(), right.data(), *got_left) == 0;
      if (*got_left < left.size()) break;
    }
  }
  disk.close(*first);
  disk.close(*second);
  return same;
}

}  // namespace lockstep
