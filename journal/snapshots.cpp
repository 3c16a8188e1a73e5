// SPDX-License-Identifier: Apache-2.0
#include "journal/snapshots.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <functional>
#include <ranges>

#include "journal/directory.hpp"
#include "journal/reader.hpp"
#include "journal/segment_scan.hpp"

namespace lockstep {
namespace {

constexpr std::string_view prefix = "snap-";
constexpr std::string_view suffix = ".snp";
constexpr std::string_view temporary_suffix = ".snp.tmp";
constexpr std::size_t index_digits = 16;

/// Whether the journal goes on from a snapshot; nothing: its history begins behind it.
Result<bool> reaches_back_to(Disk& disk, const std::string& directory, const std::string& path,
                             const SnapshotHeader& header) {
  const auto state = look_at_hard_state(disk, directory);
  if (!state) return std::unexpected(state.error());
  if (state->cluster_id != header.cluster_id)
    return fail(ErrorCode::incompatible,
                fmt::format("{} is of cluster {}, and {} of cluster {}; remove the one that does not belong there",
                            path, header.cluster_id.hex(), directory, state->cluster_id.hex()));
  auto reader = JournalReader::open(disk, directory, header.index + 1);
  if (!reader && reader.error().code == ErrorCode::incomplete) return false;
  if (!reader) return std::unexpected(reader.error());
  const auto batch = reader->next();
  if (!batch) return std::unexpected(batch.error());
  const HistoryPosition& end = reader->position();
  if (!*batch && end.index == 0) return true;  // no journal yet: what was made from this snapshot
  if (!*batch && end.index < header.index)
    return fail(ErrorCode::corrupt,
                fmt::format("{} holds the state of batch {}, and the journal beside it ends at batch {}: its end was "
                            "lost; restore the directory from a backup or from another replica",
                            path, header.index, end.index));
  const Digest& chain = *batch ? (*batch)->header->prev_chain : end.chain;
  if (chain == header.chain) return true;
  return fail(ErrorCode::incompatible,
              fmt::format("{} is of another history than the journal beside it: at batch {} its chain is {}, and the "
                          "journal's is {}; remove the one that does not belong there",
                          path, header.index, header.chain.hex(), chain.hex()));
}

Result<bool> begins_at_first_batch(Disk& disk, const std::string& directory) {
  const auto reader = JournalReader::open(disk, directory, 1);
  if (!reader && reader.error().code == ErrorCode::incomplete) return false;
  if (!reader) return std::unexpected(reader.error());
  return reader->hard_state().oldest_segment_id == 1;
}

/// What is decided on must be what a crash leaves behind, not what only the page cache holds.
Result<void> sync_file(Disk& disk, const std::string& path) {
  auto file = disk.open(path, OpenMode::read);
  if (!file) return std::unexpected(file.error());
  auto synced = disk.sync(*file);
  disk.close(*file);
  return synced;
}

Result<SnapshotReader> open_verified(Disk& disk, const std::string& path) {
  if (auto synced = sync_file(disk, path); !synced) return std::unexpected(synced.error());
  if (auto verified = verify_snapshot(disk, path); !verified) return std::unexpected(verified.error());
  return SnapshotReader::open(disk, path);
}

}  // namespace

std::string snapshot_name(std::uint64_t index) {
  return fmt::format("{}{:016x}{}", prefix, index, suffix);
}

std::optional<std::uint64_t> snapshot_index_of(std::string_view name) {
  if (name.size() != prefix.size() + index_digits + suffix.size()) return std::nullopt;
  std::uint64_t index = 0;
  const std::string_view digits = name.substr(prefix.size(), index_digits);
  const auto parsed = std::from_chars(digits.data(), digits.data() + digits.size(), index, 16);
  if (parsed.ec != std::errc{} || snapshot_name(index) != name) return std::nullopt;
  return index;
}

bool is_half_made_snapshot(std::string_view name) {
  return name.starts_with(prefix) && name.ends_with(temporary_suffix);
}

Result<std::vector<std::uint64_t>> list_snapshots(Disk& disk, const std::string& directory) {
  const auto names = disk.list(directory);
  if (!names) return std::unexpected(names.error());
  std::vector<std::uint64_t> found;
  for (const std::string& name : *names)
    if (const auto index = snapshot_index_of(name)) found.push_back(*index);
  std::ranges::sort(found, std::greater{});
  return found;
}

Result<void> remove_half_made_snapshots(Disk& disk, const std::string& directory) {
  const auto names = disk.list(directory);
  if (!names) return std::unexpected(names.error());
  for (const std::string& name : *names) {
    if (!is_half_made_snapshot(name)) continue;
    if (auto removed = disk.remove(directory + "/" + name); !removed) return removed;
  }
  return {};
}

Result<void> remove_older_snapshots(Disk& disk, const std::string& directory, std::size_t keep,
                                    std::uint64_t previous_index) {
  const auto found = list_snapshots(disk, directory);
  if (!found) return std::unexpected(found.error());
  Result<void> result;
  for (std::size_t i = keep; i < found->size(); ++i) {
    if ((*found)[i] >= previous_index) continue;
    if (auto removed = disk.remove(directory + "/" + snapshot_name((*found)[i])); !removed) result = removed;
  }
  return result;
}

Result<std::vector<std::uint64_t>> journal_goes_on_from(Disk& disk, const std::string& directory,
                                                        const SnapshotHeader& snapshot) {
  const auto reached = reaches_back_to(disk, directory, snapshot_name(snapshot.index), snapshot);
  if (!reached) return std::unexpected(reached.error());
  auto files = list_journal(disk, directory);
  if (!files) return std::unexpected(files.error());
  const auto state = look_at_hard_state(disk, directory);
  if (!state) return std::unexpected(state.error());
  std::vector<std::uint64_t> needed;
  for (const std::uint64_t id : std::ranges::reverse_view(files->segments)) {
    if (!*reached || id < state->oldest_segment_id) break;
    BlockStream segment(disk);
    if (auto opened = segment.open(directory + "/" + segment_name(id)); !opened) return std::unexpected(opened.error());
    if (!holds_block(segment)) continue;
    const BlockExamination first = segment.examine();
    if (first.verdict != BlockVerdict::valid)
      return fail(ErrorCode::corrupt, fmt::format("{}: its first block cannot be used: {}; `lockstep journal verify` "
                                                  "says what is damaged",
                                                  segment.path(), first.cause));
    needed.insert(needed.begin(), id);
    if (position_before(*first.header).index <= snapshot.index) return needed;
  }
  return fail(ErrorCode::incomplete,
              fmt::format("the journal in {} begins behind batch {}", directory, snapshot.index + 1));
}

Result<SnapshotChoice> choose_snapshot(Disk& disk, const std::string& directory, SnapshotPreference preference) {
  const auto whole = begins_at_first_batch(disk, directory);
  if (!whole) return std::unexpected(whole.error());
  SnapshotChoice choice;
  if (*whole && preference == SnapshotPreference::first_batch) return choice;
  auto found = list_snapshots(disk, directory);
  if (!found) return std::unexpected(found.error());
  if (preference == SnapshotPreference::first_batch) std::ranges::reverse(*found);
  for (const std::uint64_t index : *found) {
    const std::string path = directory + "/" + snapshot_name(index);
    auto reader = open_verified(disk, path);
    if (reader && reader->header().index != index)
      reader = fail(ErrorCode::corrupt, fmt::format("{} is of batch {}", path, reader->header().index));
    if (!reader) {
      if (reader.error().code == ErrorCode::incompatible) return std::unexpected(reader.error());
      choice.passed_over.push_back(reader.error().message);
      continue;
    }
    const auto reached = reaches_back_to(disk, directory, path, reader->header());
    if (!reached) return std::unexpected(reached.error());
    if (!*reached) {
      choice.passed_over.push_back(fmt::format("{}: the journal begins behind batch {}", path, index + 1));
      continue;
    }
    choice.snapshot.emplace(std::move(*reader));
    return choice;
  }
  if (*whole) return choice;
  return fail(ErrorCode::corrupt,
              fmt::format("{}: the journal does not begin at batch 1, and no snapshot reaches it ({}); copy one of its "
                          "snapshots (snap-*.snp) from a backup or another replica into it, or restore the directory",
                          directory, choice.passed_over.empty() ? "there is none" : choice.passed_over.front()));
}

}  // namespace lockstep
