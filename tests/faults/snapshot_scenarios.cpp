// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <optional>

#include "journal/directory.hpp"
#include "journal/hard_state.hpp"
#include "journal/slice.hpp"
#include "journal/snapshot_restore.hpp"
#include "journal/snapshots.hpp"
#include "journal/testing/example_snapshot.hpp"
#include "tests/faults/scenarios.hpp"

namespace lockstep::faults {
namespace {

// A snapshot beside the journal, as a node makes one: behind two others, of which the older is removed. Its images are
// longer than what is written at once.

constexpr std::uint64_t snapshot_batches[] = {14, 25, 38};

ExampleSnapshot snapshot_of(const Situation& at, std::uint64_t index, const ClusterId& cluster) {
  static const ExampleSnapshot images({}, {}, {{600}, {5000, 1'100'000}});
  ExampleSnapshot snapshot = images;
  const HistoryPosition position = position_after(at.owed.history[index - 1]);
  snapshot.header.cluster_id = cluster;
  snapshot.header.index = position.index;
  snapshot.header.seq = position.seq;
  snapshot.header.time_ns = position.time_ns;
  snapshot.header.chain = position.chain;
  return snapshot;
}

/// Written, named by the hard state, and the journal behind the one before it let go.
bool take_snapshot(Situation& at, std::uint64_t index) {
  JournalWriter& writer = at.run->writer();
  const ExampleSnapshot snapshot = snapshot_of(at, index, writer.hard_state().cluster_id);
  const std::uint64_t previous = writer.hard_state().snapshot_index;
  if (!snapshot.write(at.disk, data_directory)) return false;
  SnapshotMark mark;
  mark.index = index;
  mark.chain = snapshot.header.chain;
  mark.previous_index = previous;
  writer.store_snapshots(mark);
  writer.prune(index);
  at.poll_for_a_while();
  if (writer.hard_state().snapshot_index != index) return false;
  at.snapshot = index;
  return remove_older_snapshots(at.disk, data_directory, 2, previous).has_value();
}

bool prepare_snapshots(Situation& at) {
  return at.start(2) && at.append(40) && take_snapshot(at, snapshot_batches[0]) &&
         take_snapshot(at, snapshot_batches[1]);
}

void take_third_snapshot(Situation& at) {
  static_cast<void>(take_snapshot(at, snapshot_batches[2]));
}

/// The batch of the snapshot that a start goes on from; 0 for none.
Result<std::uint64_t> snapshot_to_start_from(MemoryDisk& left) {
  if (auto removed = remove_half_made_snapshots(left, data_directory); !removed)
    return std::unexpected(removed.error());
  const auto choice = choose_snapshot(left, data_directory);
  if (!choice) return std::unexpected(choice.error());
  if (!choice->passed_over.empty()) return broken("a crash damaged a snapshot: " + choice->passed_over.front());
  return choice->snapshot ? choice->snapshot->header().index : 0;
}

Result<std::string> check_snapshots(const Situation& at, MemoryDisk& left) {
  Owed owed = at.owed;
  owed.first_index = snapshot_batches[1] + 1;  // the third's hard state may be there, though nobody was told
  auto verdict = check_restart(left, owed);
  if (!verdict) return verdict;
  const auto first = snapshot_to_start_from(left);
  if (!first) return std::unexpected(first.error());
  if (*first != snapshot_batches[1] && *first != snapshot_batches[2])
    return broken(fmt::format("a start goes on from batch {}, and there was a snapshot of {}", *first, at.snapshot));
  if (*first < at.snapshot) return broken(fmt::format("the snapshot of batch {} is gone", at.snapshot));
  const auto second = snapshot_to_start_from(left);
  if (!second || *second != *first) return broken("a second start goes on from another snapshot");
  // The one before it is kept, and so is the journal behind that: should the newest rot, that one is taken.
  if (*first != snapshot_batches[2]) return verdict;
  left.flip_bit(data_directory + "/" + snapshot_name(*first), (disk_block_bytes + 100) * 8);
  const auto previous = choose_snapshot(left, data_directory);
  if (!previous) return broken("without the newest snapshot there is no start: " + previous.error().message);
  if (!previous->snapshot || previous->snapshot->header().index != snapshot_batches[1])
    return broken("the previous snapshot is not there to start from");
  return verdict;
}

// A directory made of others: out of a snapshot, out of a snapshot and a journal, out of a part of a journal.

const std::string source_directory = "source";
constexpr std::uint64_t restored_batch = 25;

bool prepare_source(Situation& at) {
  auto run = JournalRun::start(at.disk, source_directory, at.owed.history, 2);
  if (!run) return false;
  for (int i = 0; i < 40; ++i)
    if (!(*run)->append_random() || !(*run)->settle()) return false;
  const ClusterId cluster = (*run)->writer().hard_state().cluster_id;
  return (*run)->writer().close() && snapshot_of(at, restored_batch, cluster).write(at.disk, source_directory);
}

bool prepare_snapshot_source(Situation& at) {
  at.owed.first_index = restored_batch + 1;
  const bool prepared = prepare_source(at);
  if (prepared) at.owed.history.resize(restored_batch);  // what comes behind it is a history of its own
  return prepared;
}

bool prepare_snapshot_and_journal_source(Situation& at) {
  at.owed.first_index = restored_batch + 1;
  return prepare_source(at);
}

void restore(Situation& at, std::optional<std::string> journal) {
  const std::string snapshot = source_directory + "/" + snapshot_name(restored_batch);
  at.done = restore_directory(at.disk, {snapshot, data_directory, std::move(journal)}).has_value();
}

void restore_snapshot(Situation& at) {
  restore(at, std::nullopt);
}

void restore_snapshot_and_journal(Situation& at) {
  restore(at, source_directory);
}

void cut(Situation& at) {
  SliceRequest request;
  request.from = source_directory;
  request.to = data_directory;
  request.first_seq = 1;
  at.done = cut_slice(at.disk, request).has_value();
}

/// All of it, or nothing that a start would go on from.
Result<std::string> check_made(const Situation& at, MemoryDisk& left, std::uint64_t snapshot) {
  const auto files = list_journal(left, data_directory);
  const auto source = look_at_hard_state(left, source_directory);
  const auto made = look_at_hard_state(left, data_directory);
  // Of an empty directory a start makes a journal, of a cluster of its own.
  const bool whole = source && made && made->cluster_id == source->cluster_id;
  if (at.done && !whole) return broken("what was made is gone");
  if (files && files->half_made()) {
    Owed owed = at.owed;
    owed.may_refuse = true;
    auto verdict = check_restart(left, owed);
    if (verdict && !verdict->starts_with("refused")) return broken("a start goes on from what was half made");
    return verdict;
  }
  Owed owed = at.owed;
  owed.acknowledged = whole ? owed.history.size() : 0;
  if (!whole) owed.history.clear(), owed.first_index = 1;
  auto verdict = check_restart(left, owed);
  if (!verdict) return verdict;
  if (!whole) snapshot = 0;  // and none is left that does not belong to that
  const auto from = snapshot_to_start_from(left);
  if (!from) return std::unexpected(from.error());
  if (*from != snapshot) return broken(fmt::format("a start goes on from batch {} instead of {}", *from, snapshot));
  return verdict;
}

Result<std::string> check_restored(const Situation& at, MemoryDisk& left) {
  return check_made(at, left, restored_batch);
}

Result<std::string> check_cut(const Situation& at, MemoryDisk& left) {
  return check_made(at, left, 0);
}

constexpr Scenario table[] = {
    {"a snapshot", prepare_snapshots, take_third_snapshot, check_snapshots},
    {"a restore", prepare_snapshot_source, restore_snapshot, check_restored},
    {"a restore with a journal", prepare_snapshot_and_journal_source, restore_snapshot_and_journal, check_restored},
    {"a cut", prepare_source, cut, check_cut},
};

}  // namespace

std::span<const Scenario> snapshot_scenarios() {
  return table;
}

}  // namespace lockstep::faults
