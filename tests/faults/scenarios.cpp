// SPDX-License-Identifier: Apache-2.0
#include "tests/faults/scenarios.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "journal/directory.hpp"
#include "journal/hash_log.hpp"
#include "journal/holes.hpp"
#include "journal/inspect.hpp"
#include "journal/recovery.hpp"
#include "journal/repair.hpp"
#include "journal/skips.hpp"

namespace lockstep::faults {
namespace {

std::string path_of(std::uint64_t segment) {
  return data_directory + "/" + segment_name(segment);
}

std::vector<std::byte> bytes_of(const MemoryDisk& disk, const std::string& path) {
  const auto bytes = disk.bytes(path);
  return {bytes.begin(), bytes.end()};
}

Result<std::string> check_promises(const Situation& at, MemoryDisk& left) {
  return check_restart(left, at.owed);
}

// A directory becomes a journal.

bool prepare_nothing(Situation&) {
  return true;
}

void start_only(Situation& at) {
  at.start(2);
}

// Segments are made, filled, sealed and followed by the next; the hard state with each.

bool prepare_start(Situation& at) {
  return at.start(2);
}

void make_segments_and_roll(Situation& at) {
  at.append(26);
  at.run->advance(10'000'000);
  at.poll_for_a_while();
}

bool prepare_batches(Situation& at) {
  return at.start(2) && at.append(12);
}

void close(Situation& at) {
  static_cast<void>(at.run->writer().close());
}

// A start: over a clean end with spares, over a torn tail, over an ambiguous one.

bool prepare_killed(Situation& at) {
  if (!prepare_batches(at)) return false;
  at.run.reset();
  return true;
}

bool prepare_torn(Situation& at) {
  if (!prepare_batches(at)) return false;
  at.disk.complete_only(0);
  for (int i = 0; i < 4; ++i) at.run->append(at.run->maker().make({5000}));
  MemoryDisk cut = at.disk.after_power_cut(7);
  at.disk.complete_only(UINT64_MAX);
  at.run.reset();
  at.disk = std::move(cut);
  return true;
}

void start_and_append(Situation& at) {
  if (at.start(3)) at.append(4);
}

bool prepare_ambiguous(Situation& at) {
  if (!prepare_killed(at)) return false;
  const auto info = inspect_journal(at.disk, data_directory, InspectDepth::blocks);
  if (!info) return false;
  const auto used = std::ranges::find_if(info->segments, [](const SegmentInfo& s) { return !s.sealed && !s.spare; });
  if (used == info->segments.end()) return false;
  const std::string path = data_directory + "/" + used->file;
  for (int sector = 0; sector < 2; ++sector)
    at.disk.overwrite(path, used->used_bytes + static_cast<std::uint64_t>(sector) * disk_block_bytes,
                      std::vector<std::byte>(disk_block_bytes, static_cast<std::byte>(0x70 + sector)));
  at.damaged = bytes_of(at.disk, path);
  at.owed.accept_tail = true;
  return true;
}

void accept_tail(Situation& at) {
  static_cast<void>(recover(at.disk, {.directory = data_directory, .accept_tail = true, .seed = 5}));
}

/// Whatever happened, what was cut is there as it was.
Result<std::string> check_copy_kept(const Situation& at, MemoryDisk& left) {
  auto verdict = check_restart(left, at.owed);
  if (!verdict) return verdict;
  const auto names = left.list(data_directory);
  const bool kept = std::ranges::any_of(*names, [&](const std::string& name) {
    return name.ends_with(".bad") && bytes_of(left, data_directory + "/" + name) == at.damaged;
  });
  if (!kept) return broken("the damaged tail was cut, and no whole copy of it is left");
  return verdict;
}

// Repair of what can be derived: two SEALs.

bool prepare_damaged(Situation& at) {
  if (!at.start(2) || !at.append(26)) return false;
  at.run.reset();
  if (!at.start(3) || !at.append(4)) return false;
  at.run.reset();
  const auto info = inspect_journal(at.disk, data_directory, InspectDepth::blocks);
  if (!info || info->segments.size() < 4) return false;
  for (const std::size_t segment : {0U, 2U}) {
    const std::uint64_t seal = info->segments[segment].used_bytes - seal_block_bytes;
    at.disk.flip_bit(path_of(info->segments[segment].segment_id), (seal + 300) * 8);
  }
  at.damaged = bytes_of(at.disk, path_of(1));
  return true;
}

void repair(Situation& at) {
  static_cast<void>(repair_journal(at.disk, data_directory, false));
}

Result<std::string> check_repaired(const Situation& at, MemoryDisk& left) {
  const auto report = repair_journal(left, data_directory, false);
  if (!report) return broken("a repair after a crash of one failed: " + report.error().message);
  if (!report->left.empty()) return broken("a repair after a crash of one leaves holes");
  const auto again = repair_journal(left, data_directory, false);
  if (!again || !again->done.empty() || !again->left.empty()) return broken("a repaired journal is repaired again");
  return check_copy_kept(at, left);
}

// Repair of what is missing: batches that another directory still has.

const std::string other_copy = "peer";

bool prepare_hole(Situation& at) {
  if (!at.start(2) || !at.append(26)) return false;
  at.run.reset();
  const auto names = at.disk.list(data_directory);
  if (!names || !at.disk.make_directory(other_copy)) return false;
  for (const std::string& name : *names)
    at.disk.put(other_copy + "/" + name, bytes_of(at.disk, data_directory + "/" + name));
  const std::string path = path_of(1);
  const std::uint64_t half = at.disk.bytes(path).size() / 2 / disk_block_bytes * disk_block_bytes;
  at.disk.overwrite(path, half, std::vector<std::byte>(2 * disk_block_bytes, std::byte{0x33}));
  at.damaged = bytes_of(at.disk, path);
  return true;
}

/// The batches of a hole, of the other copy.
Result<std::vector<OwnedBatch>> missing_batches(Disk& disk, const Hole& hole) {
  auto reader = JournalReader::open(disk, other_copy, hole.before.index + 1);
  if (!reader) return std::unexpected(reader.error());
  std::vector<OwnedBatch> batches;
  while (hole.lacks_batches() && reader->position().index < hole.last_index) {
    const auto batch = reader->next();
    if (!batch) return std::unexpected(batch.error());
    if (!*batch) return broken("the other copy lacks a batch");
    OwnedBatch owned{*(*batch)->header, AlignedBuffer((*batch)->payload.size())};
    std::ranges::copy((*batch)->payload, owned.buffer.span().begin());
    batches.push_back(std::move(owned));
  }
  return batches;
}

/// How many holes were filled.
Result<int> fill_holes(Disk& disk) {
  for (int filled = 0;; ++filled) {
    const auto holes = find_holes(disk, data_directory);
    if (!holes) return std::unexpected(holes.error());
    if (holes->empty()) return filled;
    const auto batches = missing_batches(disk, holes->front());
    if (!batches) return std::unexpected(batches.error());
    std::vector<BatchView> views;
    for (const OwnedBatch& batch : *batches) views.push_back(batch.view());
    const auto done = fill_hole(disk, data_directory, holes->front(), views);
    if (!done) return std::unexpected(done.error());
  }
}

void fill(Situation& at) {
  static_cast<void>(fill_holes(at.disk));
}

Result<std::string> check_filled(const Situation& at, MemoryDisk& left) {
  const auto filled = fill_holes(left);
  if (!filled) return broken("a hole cannot be filled after a crash: " + filled.error().message);
  return check_copy_kept(at, left);
}

// Pruning, behind two snapshots.

bool prepare_long(Situation& at) {
  return at.start(2) && at.append(40);
}

void prune(Situation& at) {
  SnapshotMark mark;
  mark.index = 38;
  mark.chain = at.owed.history[mark.index - 1].chain;
  mark.previous_index = 30;
  at.owed.first_index = mark.previous_index + 1;
  at.run->writer().store_snapshots(mark);
  at.run->writer().prune(mark.previous_index + 1);
  at.poll_for_a_while();
}

// The hard state alone: a vote.

void vote(Situation& at) {
  auto file = HardStateFile::open(at.disk, data_directory);
  if (!file) return;
  HardState next = file->value();
  next.term = 7;
  next.voted_for = 3;
  at.done = file->store(next).has_value();
}

Result<std::string> check_vote(const Situation& at, MemoryDisk& left) {
  // A start takes the copy that lags along; so what counts is what stands after it, and after another.
  auto verdict = check_restart(left, at.owed);
  if (!verdict) return verdict;
  const auto state = look_at_hard_state(left, data_directory);
  if (!state) return std::unexpected(state.error());
  const bool voted = state->term == 7 && state->voted_for == 3;
  const bool untouched = state->term == 0 && state->voted_for == 0;
  if (at.done && !voted) return broken("a vote is forgotten");
  if (!voted && !untouched) return broken("half a vote is there");
  return verdict;
}

// An operator's skip, appended to a journal at rest.

void skip(Situation& at) {
  static_cast<void>(append_skip(at.disk, data_directory, 1, 1, 1'000'000, small_journal));
}

/// The skip may be there: a batch of which nobody was told.
Result<std::string> check_skip(const Situation& at, MemoryDisk& left) {
  Owed owed = at.owed;
  owed.unknown_batches = 1;
  return check_restart(left, owed);
}

// The hash log: entries of a history that was cut are replaced by those of the one that followed it.

constexpr std::uint64_t kept_entries = 20;
constexpr std::uint64_t stale_entries = 40;
constexpr std::uint64_t new_entries = 70;

HashEntry entry_of(std::uint64_t index, bool stale) {
  HashEntry entry;
  entry.index = index;
  entry.last_seq = index;
  entry.state_root = {index, stale ? 1U : 2U};
  return entry;
}

Result<HashLog> open_hash_log(MemoryDisk& disk, std::uint64_t last_index) {
  return HashLog::open(disk, data_directory, ClusterId{1, 2}, 0, last_index);
}

bool prepare_hash_log(Situation& at) {
  if (!at.disk.make_directory(data_directory)) return false;
  auto log = open_hash_log(at.disk, 0);
  for (std::uint64_t i = 1; i <= stale_entries; ++i)
    if (!log || !log->append(entry_of(i, i > kept_entries))) return false;
  at.entries = at.entries_synced = kept_entries;
  return log->sync().has_value();
}

void follow_hash_log(Situation& at) {
  auto log = open_hash_log(at.disk, kept_entries);
  if (!log) return;
  for (std::uint64_t i = kept_entries + 1; i <= new_entries; ++i) {
    if (!log->append(entry_of(i, false))) return;
    at.entries = i;
    if (i % 10 != 0) continue;
    if (!log->sync()) return;
    at.entries_synced = i;
  }
}

Result<std::string> check_hash_log(const Situation& at, MemoryDisk& left) {
  auto log = open_hash_log(left, at.entries);
  if (!log) return broken("the hash log is refused: " + log.error().message);
  if (log->last_index() < at.entries_synced) return broken("synced entries of the hash log are gone");
  // What is executed again must agree with what stands there.
  for (std::uint64_t i = 1; i <= at.entries; ++i)
    if (auto appended = log->append(entry_of(i, false)); !appended)
      return broken(fmt::format("entry {}: {}", i, appended.error().message));
  const auto content = read_hash_log(left, data_directory);
  if (!content || content->entries.size() != at.entries) return broken("the hash log does not hold what it should");
  return "in order";
}

constexpr Scenario table[] = {
    {"a new journal", prepare_nothing, start_only, check_promises},
    {"segments made, filled and sealed", prepare_start, make_segments_and_roll, check_promises},
    {"closing", prepare_batches, close, check_promises},
    {"a start over spare segments", prepare_killed, start_and_append, check_promises},
    {"a start over a torn tail", prepare_torn, start_and_append, check_promises},
    {"an ambiguous tail accepted", prepare_ambiguous, accept_tail, check_copy_kept},
    {"a repair", prepare_damaged, repair, check_repaired},
    {"a repair with another copy's batches", prepare_hole, fill, check_filled},
    {"pruning", prepare_long, prune, check_promises},
    {"a vote", prepare_killed, vote, check_vote},
    {"a skip", prepare_killed, skip, check_skip},
    {"the hash log", prepare_hash_log, follow_hash_log, check_hash_log},
};

}  // namespace

bool Situation::start(std::uint64_t seed) {
  auto started = JournalRun::start(disk, data_directory, owed.history, seed);
  if (started) run = std::move(*started);
  return started.has_value();
}

bool Situation::append(int batches) {
  bool kept = true;
  for (int i = 0; kept && i < batches; ++i) kept = run->append_random() && run->settle();
  owed.acknowledged = std::max(owed.acknowledged, run->writer().durable_index());
  return kept;
}

void Situation::poll_for_a_while() {
  for (int i = 0; i < 20; ++i) run->poll();
}

std::span<const Scenario> journal_scenarios() {
  return table;
}

}  // namespace lockstep::faults
