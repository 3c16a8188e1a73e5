// SPDX-License-Identifier: Apache-2.0
#include "journal/hard_state.hpp"

#include <fmt/format.h>

#include <cstring>
#include <optional>
#include <utility>

#include "journal/block.hpp"
#include "journal/directory.hpp"

namespace lockstep {
namespace {

constexpr std::uint64_t copy_offsets[2] = {0, hard_state_second_copy};

Digest checksum_of(HardState state) {
  state.copy = 0;
  return xxh3_128(std::as_bytes(std::span(&state, 1)).subspan(sizeof(Digest)));
}

Result<void> write_copy(Disk& disk, FileId file, HardState state, std::uint16_t copy, AlignedBuffer& sector) {
  state.copy = copy;
  std::memcpy(sector.data(), &state, sizeof state);
  if (auto result = disk.write(file, copy_offsets[copy], sector.span()); !result) return result;
  return disk.sync(file);
}

Result<void> write_copies(Disk& disk, FileId file, const HardState& state, AlignedBuffer& sector) {
  for (std::uint16_t copy = 0; copy < 2; ++copy)
    if (auto result = write_copy(disk, file, state, copy, sector); !result) return result;
  return {};
}

/// The copy that does not hold `value`, after a store that was cut short or damage; nothing when both do.
std::optional<std::uint16_t> find_lagging_copy(Disk& disk, FileId file, HardState value, AlignedBuffer& sector) {
  for (std::uint16_t copy = 0; copy < 2; ++copy) {
    value.copy = copy;
    const auto got = disk.read(file, copy_offsets[copy], sector.span());
    if (!got || *got != sizeof value || std::memcmp(sector.data(), &value, sizeof value) != 0) return copy;
  }
  return std::nullopt;
}

bool is_newer(const HardState& state) {
  return state.version != journal_version || (state.flags & ~hard_state_known_flags) != 0 || state.zero1 != 0 ||
         !all_zero(std::as_bytes(std::span(state.zero0))) || !all_zero(std::as_bytes(std::span(state.zero2)));
}

}  // namespace

Result<HardState> read_hard_state(Disk& disk, FileId file, const std::string& path) {
  const auto bytes = disk.size(file);
  if (!bytes) return std::unexpected(bytes.error());
  if (*bytes != hard_state_file_bytes)
    return fail(ErrorCode::corrupt, fmt::format("{} has {} bytes instead of {}; restore it from a backup", path, *bytes,
                                                hard_state_file_bytes));
  std::optional<HardState> copies[2];
  AlignedBuffer sector(disk_block_bytes);
  for (std::uint16_t copy = 0; copy < 2; ++copy) {
    const auto got = disk.read(file, copy_offsets[copy], sector.span());
    if (!got || *got != sizeof(HardState)) continue;
    HardState state;
    std::memcpy(&state, sector.data(), sizeof state);
    if (state.magic != hard_state_magic || state.copy != copy || state.checksum != checksum_of(state)) continue;
    if (is_newer(state))
      return fail(ErrorCode::incompatible, fmt::format("{} was written by a newer version of lockstep", path));
    copies[copy] = state;
  }
  if (!copies[0] && !copies[1])
    return fail(ErrorCode::corrupt, fmt::format("both copies in {} are damaged; restore it from a backup", path));
  if (!copies[0] || !copies[1]) return copies[0] ? *copies[0] : *copies[1];
  const HardState& first = *copies[0];
  const HardState& second = *copies[1];
  if (first.sequence == second.sequence) {
    if (first.checksum == second.checksum) return first;
  } else {
    const HardState& newer = first.sequence > second.sequence ? first : second;
    const HardState& older = first.sequence > second.sequence ? second : first;
    if (newer.sequence == older.sequence + 1 && newer.parent == older.checksum) return newer;
  }
  return fail(ErrorCode::corrupt,
              fmt::format("the copies in {} contradict each other (sequences {} and {}); restore it from a backup",
                          path, first.sequence, second.sequence));
}

Result<HardState> look_at_hard_state(Disk& disk, const std::string& directory) {
  const std::string path = directory + "/" + hard_state_name;
  auto file = disk.open(path, OpenMode::read);
  if (!file) {
    auto there = require_journal(disk, directory);
    return std::unexpected(there ? file.error() : there.error());
  }
  auto state = read_hard_state(disk, *file, path);
  // Two copies read around a store may seem to contradict each other; once more, they will not.
  if (!state && state.error().code == ErrorCode::corrupt) state = read_hard_state(disk, *file, path);
  disk.close(*file);
  return state;
}

HardStateFile::HardStateFile(HardStateFile&& other) noexcept
    : disk_(other.disk_),
      file_(std::exchange(other.file_, FileId::none)),
      sector_(std::move(other.sector_)),
      value_(other.value_),
      lagging_copy_(other.lagging_copy_) {}

HardStateFile::~HardStateFile() {
  if (file_ != FileId::none) disk_->close(file_);
}

Result<void> HardStateFile::create(Disk& disk, const std::string& directory, HardState first) {
  const std::string path = directory + "/" + hard_state_name;
  const std::string temporary = path + ".tmp";
  auto file = disk.open(temporary, OpenMode::create_direct);
  if (!file) return std::unexpected(file.error());
  first.sequence = 1;
  first.checksum = checksum_of(first);
  AlignedBuffer sector(disk_block_bytes);
  Result<void> result = disk.zero_fill(*file, hard_state_file_bytes);
  if (result) result = write_copies(disk, *file, first, sector);
  disk.close(*file);
  if (result) result = disk.rename(temporary, path);
  if (!result) static_cast<void>(disk.remove(temporary));
  if (result) result = disk.sync_directory(directory);
  return result;
}

Result<HardStateFile> HardStateFile::open(Disk& disk, const std::string& directory) {
  const std::string path = directory + "/" + hard_state_name;
  auto file = disk.open(path, OpenMode::write_direct);
  if (!file) return std::unexpected(file.error());
  HardStateFile opened(disk, *file);
  // What is decided on must be what a crash leaves behind, not what only the page cache holds.
  if (auto synced = disk.sync(*file); !synced) return std::unexpected(synced.error());
  auto value = read_hard_state(disk, *file, path);
  if (!value) return std::unexpected(value.error());
  opened.value_ = *value;
  opened.lagging_copy_ = find_lagging_copy(disk, *file, *value, opened.sector_);
  return opened;
}

Result<void> HardStateFile::store(HardState next) {
  // The copy that lags comes first: the other may be the only good one, and must not fall two stores behind.
  if (lagging_copy_)
    if (auto caught_up = write_copy(*disk_, file_, value_, *lagging_copy_, sector_); !caught_up) return caught_up;
  lagging_copy_.reset();
  next.sequence = value_.sequence + 1;
  next.parent = value_.checksum;
  next.copy = 0;
  next.checksum = checksum_of(next);
  if (auto written = write_copies(*disk_, file_, next, sector_); !written) return written;
  value_ = next;
  return {};
}

}  // namespace lockstep
