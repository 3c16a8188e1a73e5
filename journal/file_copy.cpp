// SPDX-License-Identifier: Apache-2.0
#include "journal/file_copy.hpp"

#include <cstring>

#include "journal/aligned_buffer.hpp"

namespace lockstep {

Result<void> copy_file(Disk& disk, const std::string& from, const std::string& directory, const std::string& name) {
  const std::string copy_path = directory + "/" + name;
  static_cast<void>(disk.remove(copy_path));  // left by an attempt that did not get further
  auto source = disk.open(from, OpenMode::read);
  if (!source) return std::unexpected(source.error());
  auto to = disk.open(copy_path, OpenMode::create_direct);
  Result<void> result;
  if (!to) result = std::unexpected(to.error());
  AlignedBuffer piece(std::size_t{1} << 20);
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
  return result;
}

}  // namespace lockstep
