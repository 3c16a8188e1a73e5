// SPDX-License-Identifier: Apache-2.0
#include "journal/hash_log.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <optional>
#include <utility>

#include "journal/block.hpp"
#include "journal/flipped_bit.hpp"

namespace lockstep {
namespace {

constexpr std::size_t piece_bytes = std::size_t{1} << 20;
constexpr std::uint64_t entries_per_look = 512;

template <class T>
Digest checksum_of(const T& object) {
  return xxh3_128(std::as_bytes(std::span(&object, 1)).subspan(sizeof(Digest)));
}

std::uint64_t offset_of(std::uint64_t entry) {
  return sizeof(HashLogHeader) + entry * sizeof(HashEntry);
}

Result<void> check_header(const HashLogHeader& header, const std::string& path) {
  if (header.magic != hash_log_magic || header.checksum != checksum_of(header))
    return fail(ErrorCode::corrupt, fmt::format("{}: its header is damaged; move the file away: the next start derives "
                                                "again what the journal has the messages for",
                                                path));
  if (header.version != journal_version || header.flags != 0 || header.endian != endian_marker ||
      !all_zero(std::as_bytes(std::span(header.zero))))
    return fail(ErrorCode::incompatible, fmt::format("{} was written by a newer version of lockstep", path));
  return {};
}

/// What a damaged header was, when its checksum proves it: all but the cluster and the replica is the same in each.
std::optional<HashLogHeader> restored(const HashLogHeader& damaged) {
  HashLogHeader header;
  header.cluster_id = damaged.cluster_id;
  header.replica_id = damaged.replica_id;
  header.checksum = checksum_of(header);
  if (is_damaged_checksum(damaged.checksum, header.checksum)) return header;
  header.checksum = damaged.checksum;
  return without_flipped_bit(header, offsetof(HashLogHeader, cluster_id), offsetof(HashLogHeader, zero),
                             [](const HashLogHeader& tried) { return tried.checksum == checksum_of(tried); });
}

/// Makes a damaged header what it was, when that can be known. It stays so in the file, which is only ever appended to.
void restore(HashLogHeader& header) {
  if (header.magic == hash_log_magic && header.checksum == checksum_of(header)) return;
  header = restored(header).value_or(header);
}

/// The last entry that verifies and has all of `flags`, whatever is before or behind it.
Result<std::optional<HashEntry>> last_entry_with(Disk& disk, FileId file, std::uint32_t flags) {
  const auto bytes = disk.size(file);
  if (!bytes) return std::unexpected(bytes.error());
  std::uint64_t end = (*bytes - std::min<std::uint64_t>(*bytes, sizeof(HashLogHeader))) / sizeof(HashEntry);
  AlignedBuffer piece(entries_per_look * sizeof(HashEntry));
  while (end > 0) {
    const std::uint64_t begin = end - std::min(end, entries_per_look);
    const auto got = disk.read(file, offset_of(begin), piece.span().first((end - begin) * sizeof(HashEntry)));
    if (!got) return std::unexpected(got.error());
    for (std::uint64_t i = *got / sizeof(HashEntry); i > 0; --i) {
      HashEntry entry;
      std::memcpy(&entry, piece.data() + (i - 1) * sizeof entry, sizeof entry);
      if ((entry.flags & flags) == flags && entry.checksum == checksum_of(entry)) return entry;
    }
    end = begin;
  }
  return std::nullopt;
}

struct Beginning {
  HashLogHeader header;  ///< as it is, or was
  bool empty = false;    ///< neither a header nor an entry
};

/// A file without a header but with entries is damaged; without either, its making was cut short by a crash.
Result<Beginning> read_beginning(Disk& disk, FileId file, const std::string& path) {
  Beginning beginning;
  const auto bytes = std::as_writable_bytes(std::span(&beginning.header, 1));
  const auto got = disk.read(file, 0, bytes);
  if (!got) return std::unexpected(got.error());
  if (*got < sizeof(HashLogHeader) || all_zero(bytes)) {
    const auto last = last_entry_with(disk, file, 0);
    if (!last) return std::unexpected(last.error());
    beginning.empty = !*last;
    if (*last)
      return fail(ErrorCode::corrupt,
                  fmt::format("{}: its header is damaged: zeros, with entries up to batch {} behind it; move the file "
                              "away: the next start derives again what the journal has the messages for",
                              path, (*last)->index));
  }
  restore(beginning.header);
  return beginning;
}

/// The entries that verify, up to the first that does not.
Result<std::vector<HashEntry>> read_entries(Disk& disk, FileId file) {
  std::vector<HashEntry> entries;
  AlignedBuffer piece(piece_bytes);
  for (;;) {
    const auto got = disk.read(file, offset_of(entries.size()), piece.span());
    if (!got) return std::unexpected(got.error());
    const std::size_t whole = *got / sizeof(HashEntry);
    for (std::size_t i = 0; i < whole; ++i) {
      HashEntry entry;
      std::memcpy(&entry, piece.data() + i * sizeof entry, sizeof entry);
      const bool ascends = entries.empty() || entry.index >= entries.back().index;
      if (entry.checksum != checksum_of(entry) || !ascends) return entries;
      entries.push_back(entry);
    }
    if (whole * sizeof(HashEntry) < piece.size()) return entries;
  }
}

}  // namespace

HashLog::HashLog(HashLog&& other) noexcept
    : disk_(other.disk_),
      file_(std::exchange(other.file_, FileId::none)),
      path_(std::move(other.path_)),
      entries_(other.entries_),
      last_index_(other.last_index_),
      torn_bytes_(other.torn_bytes_),
      cut_index_(other.cut_index_),
      remade_(other.remade_) {}

HashLog::~HashLog() {
  if (file_ != FileId::none) disk_->close(file_);
}

Result<HashLog> HashLog::open(Disk& disk, const std::string& directory, const ClusterId& cluster_id,
                              std::uint64_t replica_id, std::uint64_t last_index) {
  const std::string path = directory + "/" + hash_log_name;
  const auto existed = has_hash_log(disk, directory);
  if (!existed) return std::unexpected(existed.error());
  auto file = disk.open(path, OpenMode::append);
  if (!file) return std::unexpected(file.error());
  HashLog log(disk, *file, path);
  HashLogHeader header;
  header.cluster_id = cluster_id;
  header.replica_id = replica_id;
  if (auto started = log.start(header, last_index); !started) return std::unexpected(started.error());
  if (auto synced = disk.sync_directory(directory); !synced) return std::unexpected(synced.error());
  log.remade_ = log.remade_ && *existed;
  return log;
}

/// Durable before any entry is: entries without a header are damage.
Result<void> HashLog::write_header(HashLogHeader header) {
  header.checksum = checksum_of(header);
  if (auto cut = disk_->truncate(file_, 0); !cut) return cut;
  if (auto written = disk_->write(file_, 0, std::as_bytes(std::span(&header, 1))); !written) return written;
  return disk_->sync(file_);
}

Result<void> HashLog::start(const HashLogHeader& wanted, std::uint64_t last_index) {
  const auto beginning = read_beginning(*disk_, file_, path_);
  if (!beginning) return std::unexpected(beginning.error());
  remade_ = beginning->empty;
  if (beginning->empty) return write_header(wanted);
  if (auto checked = check_header(beginning->header, path_); !checked) return checked;
  if (auto checked = check_owner(beginning->header, path_, wanted.cluster_id, wanted.replica_id); !checked)
    return checked;
  auto entries = read_entries(*disk_, file_);
  if (!entries) return std::unexpected(entries.error());
  const std::size_t good = entries->size();
  if (!entries->empty() && entries->back().index > last_index) cut_index_ = entries->back().index;
  while (!entries->empty() && entries->back().index > last_index) entries->pop_back();
  entries_ = entries->size();
  last_index_ = entries->empty() ? 0 : entries->back().index;
  const auto bytes = disk_->size(file_);
  if (!bytes) return std::unexpected(bytes.error());
  if (*bytes == offset_of(entries_)) return {};
  torn_bytes_ = *bytes - std::min(*bytes, offset_of(good));
  if (auto cut = disk_->truncate(file_, offset_of(entries_)); !cut) return cut;
  // Before anything is appended: a crash could else bring back entries of a history that was cut.
  return disk_->sync(file_);
}

Result<void> HashLog::append(HashEntry entry) {
  if (entry.index <= last_index_) {
    auto stored = find(entry.index);
    if (!stored) return std::unexpected(stored.error());
    if (*stored) {
      const HashEntry& before = **stored;
      const char* what = before.chain != entry.chain             ? "history"
                         : before.effects != entry.effects       ? "effects"
                         : before.state_root != entry.state_root ? "state"
                                                                 : nullptr;
      if (what == nullptr) return {};
      return fail(
          ErrorCode::diverged,
          fmt::format("at batch {} the {} differs from what {} recorded (root {} then, {} now; effects {} then, "
                      "{} now); run `replay verify` to see which of the two the journal gives",
                      entry.index, what, path_, before.state_root.short_hex(), entry.state_root.short_hex(),
                      before.effects.short_hex(), entry.effects.short_hex()));
    }
    // A batch between recorded ones: a changed checkpoint interval, or a torn log. Order is all that find() needs.
    return {};
  }
  entry.checksum = checksum_of(entry);
  auto written = disk_->write(file_, offset_of(entries_), std::as_bytes(std::span(&entry, 1)));
  if (!written) return written;
  ++entries_;
  last_index_ = entry.index;
  return {};
}

Result<std::optional<HashEntry>> HashLog::find(std::uint64_t index) {
  std::uint64_t low = 0;
  std::uint64_t high = entries_;
  while (low < high) {
    const std::uint64_t middle = low + (high - low) / 2;
    HashEntry entry;
    const auto got = disk_->read(file_, offset_of(middle), std::as_writable_bytes(std::span(&entry, 1)));
    if (!got) return std::unexpected(got.error());
    if (*got < sizeof entry || entry.checksum != checksum_of(entry))
      return fail(ErrorCode::corrupt, fmt::format("{}: offset {}: the entry is damaged", path_, offset_of(middle)));
    if (entry.index == index) return entry;
    if (entry.index < index) low = middle + 1;
    if (entry.index > index) high = middle;
  }
  return std::nullopt;
}

Result<void> HashLog::sync() {
  return disk_->sync(file_);
}

const HashEntry* HashLogContent::find(std::uint64_t index) const {
  const auto found = std::ranges::lower_bound(entries, index, {}, &HashEntry::index);
  return found == entries.end() || found->index != index ? nullptr : &*found;
}

Result<HashLogContent> read_hash_log(Disk& disk, const std::string& directory) {
  const std::string path = directory + "/" + hash_log_name;
  auto file = disk.open(path, OpenMode::read);
  if (!file) return std::unexpected(file.error());
  HashLogContent content;
  const auto beginning = read_beginning(disk, *file, path);
  Result<std::vector<HashEntry>> entries;
  if (!beginning) {
    entries = std::unexpected(beginning.error());
  } else if (beginning->empty) {
    entries = fail(ErrorCode::incomplete,
                   fmt::format("{} holds nothing, not even a header, as a crash while it was made leaves it; starting "
                               "a node on the directory makes it anew",
                               path));
  } else if (auto checked = check_header(beginning->header, path); !checked) {
    entries = std::unexpected(checked.error());
  } else {
    content.header = beginning->header;
    entries = read_entries(disk, *file);
  }
  const auto bytes = disk.size(*file);
  disk.close(*file);
  if (!entries) return std::unexpected(entries.error());
  if (!bytes) return std::unexpected(bytes.error());
  content.entries = std::move(*entries);
  content.torn_bytes = *bytes - std::min(*bytes, offset_of(content.entries.size()));
  return content;
}

Result<bool> has_hash_log(Disk& disk, const std::string& directory) {
  const auto names = disk.list(directory);
  if (!names) return std::unexpected(names.error());
  return std::ranges::find(*names, hash_log_name) != names->end();
}

Result<std::vector<HashEntry>> recorded_entries(Disk& disk, const std::string& directory, const ClusterId& cluster_id,
                                                std::uint64_t replica_id, std::uint64_t last_index) {
  const auto there = has_hash_log(disk, directory);
  if (!there) return std::unexpected(there.error());
  if (!*there) return std::vector<HashEntry>{};
  auto content = read_hash_log(disk, directory);
  if (!content && content.error().code == ErrorCode::incomplete) return std::vector<HashEntry>{};
  if (!content) return std::unexpected(content.error());
  const std::string path = directory + "/" + hash_log_name;
  if (auto owned = check_owner(content->header, path, cluster_id, replica_id); !owned)
    return std::unexpected(owned.error());
  const bool reaches = !content->entries.empty() && content->entries.back().index >= last_index;
  if (content->torn_bytes != 0 && !reaches)
    return fail(ErrorCode::incomplete,
                fmt::format("{}; start the node once, which derives it again, or move the file away to go on without",
                            describe_torn(*content, directory)));
  return std::move(content->entries);
}

Result<void> check_hash_log(Disk& disk, const std::string& directory, const ClusterId& cluster_id,
                            std::uint64_t replica_id) {
  const auto there = has_hash_log(disk, directory);
  if (!there) return std::unexpected(there.error());
  if (!*there) return {};
  const std::string path = directory + "/" + hash_log_name;
  auto file = disk.open(path, OpenMode::read);
  if (!file) return std::unexpected(file.error());
  const auto beginning = read_beginning(disk, *file, path);
  disk.close(*file);
  if (!beginning) return std::unexpected(beginning.error());
  if (beginning->empty) return {};
  if (auto checked = check_header(beginning->header, path); !checked) return checked;
  return check_owner(beginning->header, path, cluster_id, replica_id);
}

Result<void> check_owner(const HashLogHeader& header, const std::string& path, const ClusterId& cluster_id,
                         std::uint64_t replica_id) {
  if (header.cluster_id == cluster_id && header.replica_id == replica_id) return {};
  return fail(ErrorCode::incompatible,
              fmt::format("{} belongs to another cluster or replica: cluster {}, replica {}, and the directory to "
                          "cluster {}, replica {}",
                          path, header.cluster_id.hex(), header.replica_id, cluster_id.hex(), replica_id));
}

Result<std::optional<HashEntry>> last_durable_root(Disk& disk, const std::string& directory,
                                                   const ClusterId& cluster_id, std::uint64_t replica_id) {
  const auto there = has_hash_log(disk, directory);
  if (!there) return std::unexpected(there.error());
  if (!*there) return std::nullopt;
  const std::string path = directory + "/" + hash_log_name;
  auto file = disk.open(path, OpenMode::read);
  if (!file) return std::unexpected(file.error());
  HashLogHeader header;
  const auto got = disk.read(*file, 0, std::as_writable_bytes(std::span(&header, 1)));
  restore(header);
  // Behind a damaged header, entries still show what was there; a sound one may say that they are another's.
  const auto checked = check_header(header, path);
  const bool anothers =
      checked ? !check_owner(header, path, cluster_id, replica_id) : checked.error().code == ErrorCode::incompatible;
  Result<std::optional<HashEntry>> root;
  if (!got) root = std::unexpected(got.error());
  if (got && !anothers) root = last_entry_with(disk, *file, hash_entry_durable);
  disk.close(*file);
  return root;
}

std::string describe_torn(const HashLogContent& content, const std::string& directory) {
  if (content.torn_bytes == 0) return {};
  return fmt::format("{}/{}: its last {} bytes are damaged, behind batch {}; what they recorded is not known",
                     directory, hash_log_name, content.torn_bytes,
                     content.entries.empty() ? 0 : content.entries.back().index);
}

}  // namespace lockstep
