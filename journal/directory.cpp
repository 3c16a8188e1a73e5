// SPDX-License-Identifier: Apache-2.0
#include "journal/directory.hpp"

#include <fmt/format.h>

#include <charconv>
#include <filesystem>

#include "journal/hard_state.hpp"
#include "journal/snapshot_format.hpp"

namespace lockstep {
namespace {

constexpr std::string_view prefix = "seg-";
constexpr std::string_view suffix = ".jnl";
constexpr std::string_view temporary_suffix = ".tmp";
constexpr std::size_t id_digits = 16;

}  // namespace

std::string segment_name(std::uint64_t segment_id) {
  return fmt::format("{}{:016x}{}", prefix, segment_id, suffix);
}

std::optional<std::uint64_t> segment_id_of(std::string_view name) {
  if (name.size() != prefix.size() + id_digits + suffix.size()) return std::nullopt;
  std::uint64_t id = 0;
  const std::string_view digits = name.substr(prefix.size(), id_digits);
  const auto parsed = std::from_chars(digits.data(), digits.data() + digits.size(), id, 16);
  if (parsed.ec != std::errc{} || segment_name(id) != name) return std::nullopt;
  return id;
}

Result<JournalFiles> list_journal(Disk& disk, const std::string& directory) {
  const auto names = disk.list(directory);
  if (!names) return std::unexpected(names.error());
  JournalFiles files;
  for (const std::string& name : *names) {
    if (const auto id = segment_id_of(name)) files.segments.push_back(*id);
    if (name == hard_state_name) files.has_hard_state = true;
    if (snapshot_index_of(name)) files.has_snapshots = true;
    const bool ours = name.starts_with(prefix) || name.starts_with(hard_state_name);
    if (ours && name.ends_with(temporary_suffix)) files.temporary.push_back(name);
  }
  return files;
}

Result<void> require_journal(Disk& disk, const std::string& directory) {
  const auto files = list_journal(disk, directory);
  if (!files)
    return fail(files.error().code, fmt::format("{} is no data directory: {}; name the one that a node was served with",
                                                directory, files.error().message));
  if (files->has_hard_state) return {};
  if (files->half_made())
    return fail(
        ErrorCode::corrupt,
        fmt::format("{} has segments or snapshots but no {}: what a restore or a cut left when it was interrupted, "
                    "which may be removed; else restore the directory from a backup",
                    directory, hard_state_name));
  return fail(ErrorCode::usage,
              fmt::format("{} holds no journal (there is no {} in it); name the directory that a node "
                          "was served with",
                          directory, hard_state_name));
}

Result<void> make_data_directory(Disk& disk, const std::string& directory) {
  if (auto made = disk.make_directory(directory); !made)
    return fail(made.error().code, fmt::format("{}; name another place for the data directory", made.error().message));
  const std::string parent = std::filesystem::path(directory).parent_path().string();
  return disk.sync_directory(parent.empty() ? "." : parent);
}

DirectoriesMade::DirectoriesMade(Disk& disk, const std::string& directory) : disk_(disk) {
  const auto names = disk.list(directory);
  was_empty_ = !names || names->empty();
  for (std::filesystem::path at(directory); !at.empty(); at = at.parent_path()) {
    if (at == at.root_path()) break;   // its own parent
    if (!at.has_filename()) continue;  // "a/b/" is "a/b"
    if (disk.list(at.string())) break;
    missing_.push_back(at.string());
  }
}

DirectoriesMade::~DirectoriesMade() {
  for (const std::string& directory : missing_) {
    const auto names = disk_.list(directory);  // what is no directory cannot be listed, and is not ours
    if (!names || !names->empty() || !disk_.remove(directory)) break;
  }
}

void clear_data_directory(Disk& disk, const std::string& directory) {
  static_cast<void>(disk.remove(directory + "/" + hard_state_name));
  if (!disk.sync_directory(directory)) return;
  const auto names = disk.list(directory);
  if (!names) return;
  for (const std::string& name : *names) static_cast<void>(disk.remove(directory + "/" + name));
}

}  // namespace lockstep
