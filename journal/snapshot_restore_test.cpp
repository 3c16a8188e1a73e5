// SPDX-License-Identifier: Apache-2.0
#include "journal/snapshot_restore.hpp"

#include <doctest/doctest.h>

#include "journal/directory.hpp"
#include "journal/hard_state.hpp"
#include "journal/hash_log.hpp"
#include "journal/inspect.hpp"
#include "journal/retention.hpp"
#include "journal/snapshots.hpp"
#include "journal/testing/example_snapshot.hpp"
#include "journal/testing/journal_run.hpp"
#include "journal/testing/memory_disk.hpp"

namespace lockstep {
namespace {

const std::string source = "source";
const std::string target = "target";

/// A journal of some segments, with a snapshot of one of its batches.
struct Source {
  explicit Source(std::uint64_t snapshot) : index(snapshot) {
    auto run = JournalRun::start(disk, source, history, 7);
    REQUIRE(run);
    for (int i = 0; i < 60; ++i) REQUIRE((*run)->append_random());
    REQUIRE((*run)->writer().close());
    const ExampleSnapshot example(position_after(history[index - 1]), (*run)->writer().hard_state().cluster_id,
                                  {{600}, {528, 9000}});
    REQUIRE(example.write(disk, source));
  }
  [[nodiscard]] SnapshotRestore order(bool with_journal) const {
    SnapshotRestore restore{source + "/" + snapshot_name(index), target, std::nullopt};
    if (with_journal) restore.journal = source;
    return restore;
  }

  std::uint64_t index;
  MemoryDisk disk;
  std::vector<BatchHeader> history;
};

/// A process on the restored directory goes on behind `expected`.
void check_goes_on(MemoryDisk& disk, const std::vector<BatchHeader>& history, std::uint64_t last, std::uint64_t index) {
  for (int start = 0; start < 2; ++start) {
    auto choice = choose_snapshot(disk, target);
    REQUIRE_MESSAGE(choice, choice.error().message);
    REQUIRE(choice->snapshot);
    CHECK(choice->snapshot->header().index == index);
    auto recovered = recover(disk, {.directory = target, .seed = 3});
    REQUIRE_MESSAGE(recovered, recovered.error().message);
    CHECK(recovered->position == position_after(history[last - 1]));
  }
  std::vector<BatchHeader> after(history.begin(), history.begin() + static_cast<std::ptrdiff_t>(last));
  auto run = JournalRun::start(disk, target, after, 8);
  REQUIRE_MESSAGE(run, run.error().message);
  for (int i = 0; i < 5; ++i) REQUIRE((*run)->append_random());
  REQUIRE((*run)->writer().close());
  run->reset();
  auto reader = JournalReader::open(disk, target, index + 1);
  REQUIRE_MESSAGE(reader, reader.error().message);
  std::uint64_t read = index;
  for (auto batch = reader->next(); batch && *batch; batch = reader->next()) {
    CHECK((*batch)->header->chain == after[read].chain);
    ++read;
  }
  CHECK(read == last + 5);
}

TEST_CASE("a directory restored from a snapshot alone goes on behind it") {
  Source from(20);
  REQUIRE(restore_directory(from.disk, from.order(false)));
  check_goes_on(from.disk, from.history, 20, 20);
}

TEST_CASE("a pruned journal without a sound snapshot is damaged, and a copy of the snapshot mends it") {
  Source from(20);
  REQUIRE(restore_directory(from.disk, from.order(true)));
  REQUIRE(look_at_hard_state(from.disk, target)->oldest_segment_id > 1);
  const auto inspect = [&] { return inspect_journal(from.disk, target, InspectDepth::state).value(); };
  CHECK(inspect().sound());
  const std::string path = target + "/" + snapshot_name(20);
  const auto bytes = from.disk.bytes(path);
  const std::vector<std::byte> whole(bytes.begin(), bytes.end());
  const auto check_named = [&] {
    CHECK_FALSE(inspect().sound());
    REQUIRE(inspect().findings.size() == 1);
    CHECK(inspect().findings[0].tail == TailClass::corrupt);
    CHECK(inspect().findings[0].evidence.find("copy one of its snapshots") != std::string::npos);
  };
  from.disk.flip_bit(path, 5000 * 8);
  check_named();
  REQUIRE(from.disk.remove(path));
  check_named();
  from.disk.put(path, whole);
  CHECK(inspect().sound());
}

TEST_CASE("a directory restored with a journal goes on behind that") {
  for (const std::uint64_t index : {1U, 20U, 59U, 60U}) {
    CAPTURE(index);
    Source from(index);
    REQUIRE(restore_directory(from.disk, from.order(true)));
    check_goes_on(from.disk, from.history, 60, index);
  }
}

TEST_CASE("a restored directory's hash log begins with the snapshot, and goes on as the source recorded it") {
  Source from(20);
  const HardState state = look_at_hard_state(from.disk, source).value();
  const SnapshotHeader header = SnapshotReader::open(from.disk, from.order(false).snapshot)->header();
  const auto entry = [&](std::uint64_t index, HashKind kind) {
    HashEntry made;
    made.kind = kind;
    made.index = index;
    made.state_root = index == header.index ? header.root : Digest{index, 1};
    made.effects = index == header.index ? header.effects : Digest{index, 2};
    made.chain = index == header.index ? header.chain : Digest{index, 3};
    return made;
  };
  Digest at_snapshot = header.root;
  {
    auto log = HashLog::open(from.disk, source, state.cluster_id, state.replica_id, 60);
    REQUIRE(log);
    REQUIRE(log->append(entry(10, HashKind::checkpoint)));
    HashEntry same = entry(20, HashKind::checkpoint);
    SUBCASE("which agrees with the snapshot") {}
    SUBCASE("and another root for the snapshot's batch is refused") {
      at_snapshot.low ^= 1;
    }
    same.state_root = at_snapshot;
    REQUIRE(log->append(same));
    REQUIRE(log->append(entry(40, HashKind::checkpoint)));
    REQUIRE(log->append(entry(60, HashKind::closing)));
  }
  if (at_snapshot != header.root) {
    const auto refused = restore_directory(from.disk, from.order(true));
    REQUIRE_FALSE(refused);
    CHECK(refused.error().code == ErrorCode::diverged);
    CHECK_FALSE(from.disk.list(target));
    return;
  }
  REQUIRE(restore_directory(from.disk, from.order(true)));
  const auto content = read_hash_log(from.disk, target);
  REQUIRE(content);
  REQUIRE(content->entries.size() == 3);
  CHECK(content->entries[0].kind == HashKind::resumed);
  CHECK(content->entries[0].state_root == header.root);
  CHECK(content->entries[1].index == 40);
  CHECK(content->entries[2].kind == HashKind::closing);

  clear_data_directory(from.disk, target);
  REQUIRE(restore_directory(from.disk, from.order(false)));
  CHECK(read_hash_log(from.disk, target)->entries.size() == 1);
}

TEST_CASE("a directory is not restored without the roots that its source's hash log has and does not show") {
  Source from(20);
  const HardState state = look_at_hard_state(from.disk, source).value();
  const std::string path = source + "/" + hash_log_name;
  std::string_view why;
  SUBCASE("as its header is damaged") {
    REQUIRE(HashLog::open(from.disk, source, state.cluster_id, state.replica_id, 60));
    from.disk.overwrite(path, 0, std::vector(sizeof(HashLogHeader), std::byte{0x5a}));
    why = "its header is damaged";
  }
  SUBCASE("as its end is damaged") {
    REQUIRE(HashLog::open(from.disk, source, state.cluster_id, state.replica_id, 60));
    from.disk.overwrite(path, sizeof(HashLogHeader), std::vector(sizeof(HashEntry), std::byte{0x5a}));
    why = "its last 128 bytes are damaged";
  }
  SUBCASE("as it is another cluster's") {
    REQUIRE(HashLog::open(from.disk, source, ClusterId{7, 7}, state.replica_id, 60));
    why = "belongs to another cluster";
  }
  const auto refused = restore_directory(from.disk, from.order(true));
  REQUIRE_FALSE(refused);
  CHECK(refused.error().message.find(why) != std::string::npos);
  CHECK_FALSE(from.disk.list(target));
  REQUIRE(from.disk.remove(path));
  CHECK(restore_directory(from.disk, from.order(true)));
}

/// Another life of the source's history: equal up to a batch, different behind it.
void write_fork(MemoryDisk& disk, const std::string& directory, const Source& from, std::uint64_t equal_up_to) {
  const ExampleSnapshot common(position_after(from.history[equal_up_to - 1]),
                               look_at_hard_state(disk, source).value().cluster_id, {{600}});
  REQUIRE(disk.make_directory("common"));
  REQUIRE(common.write(disk, "common"));
  REQUIRE(restore_directory(disk, {"common/" + snapshot_name(equal_up_to), directory, std::nullopt}));
  std::vector<BatchHeader> fork(from.history.begin(), from.history.begin() + static_cast<std::ptrdiff_t>(equal_up_to));
  auto run = JournalRun::start(disk, directory, fork, 99);
  REQUIRE(run);
  for (int i = 0; i < 40; ++i) REQUIRE((*run)->append_random());
  REQUIRE((*run)->writer().close());
}

// T32 speaks of a follower to which a leader sends a snapshot while its own log goes another way. Between nodes that is
// consensus' business. Here a snapshot comes to a journal by an operator's restore, or by his own hand.

TEST_CASE("T32: a snapshot is not restored over a journal, whichever, nor over anything else") {
  Source from(30);
  write_fork(from.disk, target, from, 10);
  SUBCASE("of another history") {}
  SUBCASE("of the same history") {
    clear_data_directory(from.disk, target);
    REQUIRE(restore_directory(from.disk, from.order(true)));
  }
  SUBCASE("of which a restore was interrupted") {
    REQUIRE(from.disk.remove(target + "/hardstate"));
  }
  SUBCASE("or over a file of somebody else") {
    clear_data_directory(from.disk, target);
    from.disk.put(target + "/x", {});
  }
  const MemoryDisk before = from.disk.copy();
  for (const bool with_journal : {false, true}) {
    const auto refused = restore_directory(from.disk, from.order(with_journal));
    REQUIRE_FALSE(refused);
    CHECK(refused.error().code == ErrorCode::usage);
    CHECK(refused.error().message.find("target is not empty") != std::string::npos);
    CHECK(from.disk.has_files_of(before));
  }
}

TEST_CASE("T32: a snapshot is not restored with a journal that it does not fit, and nothing of either is left") {
  Source from(30);
  SnapshotRestore order = from.order(true);
  ErrorCode expected = ErrorCode::incompatible;
  SUBCASE("of another history from before the snapshot on") {
    write_fork(from.disk, "other", from, 10);
    order.journal = "other";
  }
  SUBCASE("that ends where it stands, with another chain") {
    HistoryPosition at = position_after(from.history.back());
    at.chain.low ^= 1;
    const ExampleSnapshot forked(at, look_at_hard_state(from.disk, source).value().cluster_id, {{600}});
    REQUIRE(from.disk.make_directory("forked"));
    REQUIRE(forked.write(from.disk, "forked"));
    order.snapshot = "forked/" + snapshot_name(60);
  }
  SUBCASE("of another cluster") {
    const ExampleSnapshot foreign(position_after(from.history[29]), {1, 2}, {{600}});
    REQUIRE(from.disk.make_directory("foreign"));
    REQUIRE(foreign.write(from.disk, "foreign"));
    order.snapshot = "foreign/" + snapshot_name(30);
  }
  SUBCASE("that ends before it") {
    expected = ErrorCode::corrupt;
    REQUIRE(from.disk.make_directory("later"));
    const HistoryPosition at{200, 5000, from.history.back().last_time_ns, {7, 7}};
    const ExampleSnapshot later(at, look_at_hard_state(from.disk, source).value().cluster_id, {{600}});
    REQUIRE(later.write(from.disk, "later"));
    order.snapshot = "later/" + snapshot_name(200);
  }
  SUBCASE("that begins behind it") {
    expected = ErrorCode::incomplete;
    write_fork(from.disk, "other", from, 59);
    order.journal = "other";
  }
  SUBCASE("that is no journal") {
    expected = ErrorCode::io;
    order.journal = "nowhere";
  }
  const auto refused = restore_directory(from.disk, order);
  REQUIRE_FALSE(refused);
  CHECK_MESSAGE(refused.error().code == expected, refused.error().message);
  CHECK_FALSE(from.disk.list(target));  // nor the directory
  // What is refused once keeps nothing from being done right.
  CHECK(restore_directory(from.disk, from.order(true)));
}

TEST_CASE("T32: a snapshot that an operator puts beside another history's journal refuses the start") {
  Source from(30);
  write_fork(from.disk, target, from, 10);
  const auto bytes = from.disk.bytes(source + "/" + snapshot_name(30));
  from.disk.put(target + "/" + snapshot_name(30), {bytes.begin(), bytes.end()});
  const auto choice = choose_snapshot(from.disk, target);
  REQUIRE_FALSE(choice);
  CHECK(choice.error().code == ErrorCode::incompatible);
}

TEST_CASE("directories that were made for nothing go again, up to the first that was there, and no file does") {
  MemoryDisk disk;
  REQUIRE(disk.make_directory("/there"));
  for (const std::string path : {"/there/a/b", "/there/a/b/", "/elsewhere/x"}) {
    CAPTURE(path);
    DirectoriesMade made(disk, path);
    CHECK(made.was_empty());
    REQUIRE(disk.make_directory(path));
  }
  CHECK(disk.list("/there"));
  for (const char* gone : {"/there/a/b", "/there/a", "/elsewhere/x", "/elsewhere"}) CHECK_FALSE(disk.list(gone));
  disk.put("/there/file", {});
  {
    DirectoriesMade made(disk, "/there/file");
  }
  {
    DirectoriesMade made(disk, "/there");
    CHECK_FALSE(made.was_empty());
  }
  CHECK(disk.list("/there")->size() == 1);
}

TEST_CASE("a damaged snapshot is not restored") {
  Source from(30);
  from.disk.put(source + "/" + snapshot_name(20), {});
  const auto refused = restore_directory(from.disk, {source + "/" + snapshot_name(20), target, std::nullopt});
  REQUIRE_FALSE(refused);
  CHECK(refused.error().code == ErrorCode::corrupt);
}

TEST_CASE("T32: a power cut or an error at any operation of a restore leaves the whole or what a start refuses") {
  for (const bool with_journal : {false, true}) {
    CAPTURE(with_journal);
    std::size_t whole = 0;
    std::size_t refused = 0;
    Source counted(20);
    const std::uint64_t before = counted.disk.operations();
    REQUIRE(restore_directory(counted.disk, counted.order(with_journal)));
    const std::uint64_t operations = counted.disk.operations() - before;
    const std::uint64_t last = with_journal ? 60 : 20;
    for (std::uint64_t at = 1; at <= operations; ++at) {
      CAPTURE(at);
      Source from(20);
      from.disk.fail_at(at, MemoryDisk::Fault::power_cut, EIO);
      const bool done = restore_directory(from.disk, from.order(with_journal)).has_value();
      for (std::uint64_t seed = 1; seed <= 8; ++seed) {
        MemoryDisk after = from.disk.after_power_cut(seed);
        // As `serve` starts: of an empty directory it would make a journal.
        const auto left = list_journal(after, target);
        auto recovered = recover(after, {.directory = target, .seed = 3});
        CHECK((recovered || !done));
        if (left->half_made()) CHECK_FALSE(recovered);
        if (recovered && left->has_hard_state) {
          CHECK(recovered->position.index == last);
          CHECK(choose_snapshot(after, target)->snapshot->header().index == 20);
          ++whole;
        }
        if (!recovered) ++refused;
      }
      Source full(20);
      full.disk.fail_at(at, MemoryDisk::Fault::error, ENOSPC);
      if (restore_directory(full.disk, full.order(with_journal))) continue;
      CHECK_FALSE(full.disk.list(target));  // the directory has gone too
      CHECK(restore_directory(full.disk, full.order(with_journal)));
    }
    CHECK(whole > 0);
    CHECK(refused > 0);
  }
}

TEST_CASE("as much of a journal is kept as its owner wants, in whole segments") {
  Source from(20);
  const auto keep = [&](const Retention& retention) {
    const auto first = first_batch_to_keep(from.disk, source, retention, from.history.back().last_time_ns);
    REQUIRE(first);
    return *first;
  };
  CHECK(keep({.max_bytes = UINT64_MAX, .max_age_ns = 0}) == 0);
  const std::uint64_t least = keep({.max_bytes = 0, .max_age_ns = 0});
  CHECK(least > 1);
  CHECK(least <= 60);
  const std::uint64_t more = keep({.max_bytes = 2 * min_segment_bytes, .max_age_ns = 0});
  CHECK(more < least);
  CHECK(keep({.max_bytes = UINT64_MAX, .max_age_ns = 1}) == least);
}

}  // namespace
}  // namespace lockstep
