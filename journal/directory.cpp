// SPDX-License-Identifier: Apache-2.0
#include "journal/directory.hpp"

#include <fmt/format.h>

#include <charconv>

#include "journal/hard_state.hpp"

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
    const bool ours = name.starts_with(prefix) || name.starts_with(hard_state_name);
    if (ours && name.ends_with(temporary_suffix)) files.temporary.push_back(name);
  }
  return files;
}

}  // namespace lockstep
