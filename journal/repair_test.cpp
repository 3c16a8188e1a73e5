// SPDX-License-Identifier: Apache-2.0
#include "journal/repair.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "journal/directory.hpp"
#include "journal/inspect.hpp"
#include "journal/testing/journal_run.hpp"
#include "journal/testing/memory_disk.hpp"

namespace lockstep {
namespace {

const std::string directory = "data";

std::string segment_path(std::uint64_t id) {
  return directory + "/" + segment_name(id);
}

/// A journal of 60 batches whose process is gone, and a peer's copy of its batches.
struct Damaged {
  Damaged() {
    auto run = JournalRun::start(disk, directory, history);
    REQUIRE_MESSAGE(run, run.error().message);
    for (int i = 0; i < 60; ++i) {
      REQUIRE((*run)->append_random());
      if (i % 7 != 0) continue;
      REQUIRE((*run)->settle());
      (*run)->advance(10'000'000);
      for (int turn = 0; turn < 5; ++turn) (*run)->poll();
    }
    REQUIRE((*run)->settle());
    (*run)->advance(10'000'000);
    for (int turn = 0; turn < 5; ++turn) (*run)->poll();
    auto reader = JournalReader::open(disk, directory);
    REQUIRE(reader);
    while (const auto batch = reader->next().value())
      payloads.emplace_back(batch->payload.begin(), batch->payload.end());
    REQUIRE(payloads.size() == 60);
  }

  [[nodiscard]] Result<Recovered> start_as_member() { return recover(disk, {.directory = directory, .cluster = true}); }
  [[nodiscard]] std::vector<BatchView> peer(std::uint64_t first, std::uint64_t last) const {
    std::vector<BatchView> batches;
    for (std::uint64_t index = first; index <= last; ++index)
      batches.push_back({&history[index - 1], payloads[index - 1]});
    return batches;
  }
  /// Offset and header of a segment's n-th block of a type.
  [[nodiscard]] std::pair<std::uint64_t, BlockHeader> block(std::uint64_t id, BlockType type, int nth = 0) {
    const auto bytes = disk.bytes(segment_path(id));
    for (std::uint64_t at = sizeof(SegmentHeader); at < bytes.size();) {
      BlockHeader header;
      std::memcpy(&header, bytes.data() + at, sizeof header);
      REQUIRE(header.magic == block_magic);
      if (header.type == type && nth-- == 0) return {at, header};
      at += header.total_bytes;
    }
    REQUIRE(false);
    return {};
  }
  void flip(std::uint64_t id, std::uint64_t offset) {
    const std::byte was = disk.bytes(segment_path(id))[offset];
    disk.overwrite(segment_path(id), offset, std::vector(1, was ^ std::byte{0x10}));
  }
  /// Fills holes until there are none; the batches it took.
  std::size_t fill_all() {
    std::size_t taken = 0;
    for (int round = 0; round < 20; ++round) {
      const auto holes = find_holes(disk, directory);
      REQUIRE_MESSAGE(holes, holes.error().message);
      if (holes->empty()) return taken;
      const Hole& hole = holes->front();
      const auto filled = fill_hole(disk, directory, hole, peer(hole.before.index + 1, hole.last_index));
      REQUIRE_MESSAGE(filled, filled.error().message);
      taken += *filled;
    }
    REQUIRE(false);
    return 0;
  }
  void check_whole() {
    const auto recovered = start_as_member();
    REQUIRE_MESSAGE(recovered, recovered.error().message);
    CHECK(recovered->holes.empty());
    CHECK(recovered->position.index == 60);
    CHECK(read_and_compare(disk, directory, history).value() == 60);
    const auto info = inspect_journal(disk, directory, InspectDepth::records);
    REQUIRE(info);
    CHECK(info->sound());
  }

  MemoryDisk disk;
  std::vector<BatchHeader> history;
  std::vector<std::vector<std::byte>> payloads;
};

TEST_CASE(
    "a member with a damaged batch starts repairing, names what it lacks, and is whole again with a peer's bytes") {
  Damaged journal;
  const auto [offset, header] = journal.block(2, BlockType::batch, 3);
  journal.flip(2, offset + 700);
  const std::vector before(journal.disk.bytes(segment_path(2)).begin(), journal.disk.bytes(segment_path(2)).end());
  {
    const auto repairing = journal.start_as_member();
    REQUIRE_MESSAGE(repairing, repairing.error().message);
    REQUIRE(repairing->holes.size() == 1);
    CHECK(repairing->holes[0].before.index + 1 == header.index);
    CHECK(repairing->holes[0].last_index == header.index);
    CHECK(repairing->holes[0].chain == header.chain);
    CHECK(repairing->hard_state.value().recovery_state == RecoveryState::repairing);
    CHECK(std::ranges::equal(before, journal.disk.bytes(segment_path(2))));
  }
  CHECK(journal.fill_all() == 1);
  journal.check_whole();
  CHECK(look_at_hard_state(journal.disk, directory)->recovery_state == RecoveryState::repairing);
  CHECK(std::ranges::equal(before, journal.disk.bytes(segment_path(2) + ".bad")));
}

TEST_CASE("a writer is not opened on a journal with holes") {
  Damaged journal;
  journal.flip(1, journal.block(1, BlockType::batch, 2).first + 700);
  auto repairing = journal.start_as_member();
  REQUIRE(repairing);
  const auto writer = JournalWriter::open(journal.disk, std::move(*repairing), small_journal, {});
  REQUIRE_FALSE(writer);
  CHECK(writer.error().message.find("fill its holes first") != std::string::npos);
}

TEST_CASE("several holes, a lost header and a lost segment are filled one after the other") {
  Damaged journal;
  const auto ids = list_journal(journal.disk, directory)->segments;
  REQUIRE(ids.size() >= 5);
  journal.flip(1, journal.block(1, BlockType::batch, 1).first + 300);
  journal.flip(1, journal.block(1, BlockType::batch, 4).first + 300);
  std::size_t least = 5;
  SUBCASE("a header, whose blocks are all there") {
    journal.flip(2, 100);
    least = 2;
  }
  SUBCASE("a file") {
    REQUIRE(journal.disk.remove(segment_path(2)));
  }
  SUBCASE("a run of blocks over the end of a segment") {
    const std::uint64_t from = journal.block(2, BlockType::batch, 3).first;
    const std::uint64_t bytes = journal.disk.bytes(segment_path(2)).size() - from;
    journal.disk.overwrite(segment_path(2), from, std::vector<std::byte>(bytes));
    const std::uint64_t to = journal.block(3, BlockType::batch, 2).first;
    journal.disk.overwrite(segment_path(3), sizeof(SegmentHeader),
                           std::vector<std::byte>(to - sizeof(SegmentHeader), std::byte{0x33}));
  }
  CHECK(journal.fill_all() >= least);
  journal.check_whole();
}

TEST_CASE("a hole takes only the batches that belong there, and nothing is changed by others") {
  Damaged journal;
  const auto [offset, header] = journal.block(2, BlockType::batch, 3);
  journal.flip(2, offset + 700);
  const auto holes = find_holes(journal.disk, directory);
  REQUIRE(holes);
  REQUIRE(holes->size() == 1);
  const std::vector before(journal.disk.bytes(segment_path(2)).begin(), journal.disk.bytes(segment_path(2)).end());
  const auto refused = [&](const std::vector<BatchView>& batches) {
    const auto filled = fill_hole(journal.disk, directory, holes->front(), batches);
    return !filled && filled.error().code == ErrorCode::diverged &&
           std::ranges::equal(before, journal.disk.bytes(segment_path(2)));
  };
  const std::uint64_t index = header.index;
  CHECK(refused(journal.peer(index - 1, index - 1)));
  CHECK(refused(journal.peer(index + 1, index + 1)));
  CHECK(refused(journal.peer(index, index + 1)));
  BatchHeader other = journal.history[index - 1];
  other.last_time_ns += 1;
  other.chain = batch_chain(other);
  CHECK(refused({{&other, journal.payloads[index - 1]}}));
  std::vector<std::byte> changed = journal.payloads[index - 1];
  if (!changed.empty()) {
    changed.back() ^= std::byte{1};
    CHECK(refused({{&journal.history[index - 1], changed}}));
  }
  CHECK(journal.fill_all() == 1);
}

TEST_CASE("T66: a power cut at any step of a repair leaves the damage or the repaired segment, and repairing goes on") {
  Damaged journal;
  journal.flip(2, journal.block(2, BlockType::batch, 3).first + 700);
  const auto holes = find_holes(journal.disk, directory);
  REQUIRE(holes);
  const Hole hole = holes->front();
  int repaired = 0;
  int still_damaged = 0;
  for (std::uint64_t step = 1; repaired == 0 || still_damaged < 5; ++step) {
    REQUIRE(step < 100);
    for (std::uint64_t seed = 1; seed <= 6; ++seed) {
      Damaged attempt;
      attempt.flip(2, attempt.block(2, BlockType::batch, 3).first + 700);
      attempt.disk.fail_at(step, MemoryDisk::Fault::power_cut, EIO);
      const bool done =
          fill_hole(attempt.disk, directory, hole, attempt.peer(hole.before.index + 1, hole.last_index)).has_value();
      attempt.disk = attempt.disk.after_power_cut(seed);
      const auto left = find_holes(attempt.disk, directory);
      REQUIRE_MESSAGE(left, left.error().message);
      CHECK((!done || left->empty()));
      REQUIRE(left->size() <= 1);
      if (left->empty()) {
        ++repaired;
      } else {
        ++still_damaged;
        CHECK(left->front().before == hole.before);
      }
      attempt.fill_all();
      attempt.check_whole();
    }
  }
}

TEST_CASE("what can be derived is written anew without a peer, once") {
  Damaged journal;
  SUBCASE("a SEAL") {
    journal.flip(1, journal.block(1, BlockType::seal).first + 300);
  }
  SUBCASE("a MARK") {
    journal.flip(1, journal.block(1, BlockType::mark).first + 3000);
  }
  const auto refused = recover(journal.disk, {.directory = directory});
  REQUIRE_FALSE(refused);
  CHECK(refused.error().code == ErrorCode::corrupt);
  const auto report = repair_journal(journal.disk, directory, false);
  REQUIRE_MESSAGE(report, report.error().message);
  CHECK(report->done.size() == 1);
  CHECK(report->left.empty());
  const auto again = repair_journal(journal.disk, directory, false);
  REQUIRE(again);
  CHECK(again->done.empty());
  journal.check_whole();
}

TEST_CASE("a stand-alone repair leaves lost batches alone and says which they are") {
  Damaged journal;
  const auto [offset, header] = journal.block(2, BlockType::batch, 3);
  journal.flip(2, offset + 700);
  const auto report = repair_journal(journal.disk, directory, true);
  REQUIRE_MESSAGE(report, report.error().message);
  CHECK(report->done.empty());
  REQUIRE(report->left.size() == 1);
  CHECK(describe(report->left[0]).find("batches " + std::to_string(header.index) + " to") != std::string::npos);
  CHECK_FALSE(recover(journal.disk, {.directory = directory}));
}

/// A journal whose last batch is damaged, and nothing shows whether it was acknowledged.
struct Ambiguous {
  Ambiguous() {
    auto run = JournalRun::start(disk, directory, history);
    REQUIRE_MESSAGE(run, run.error().message);
    for (int i = 0; i < 6; ++i) REQUIRE((*run)->append((*run)->maker().make({100})));
    REQUIRE((*run)->settle());
    run->reset();
    disk.overwrite(segment_path(1), sizeof(SegmentHeader) + 5 * disk_block_bytes + 300,
                   std::vector(1, std::byte{0xee}));
  }
  MemoryDisk disk;
  std::vector<BatchHeader> history;
};

TEST_CASE("T44: a member cuts an ambiguous tail, and stays in limbo over starts until the leader's proof") {
  Ambiguous journal;
  for (int life = 0; life < 3; ++life) {
    const auto recovered = recover(journal.disk, {.directory = directory, .cluster = true});
    REQUIRE_MESSAGE(recovered, recovered.error().message);
    CHECK(recovered->position.index == 5);
    CHECK(recovered->hard_state.value().recovery_state == RecoveryState::limbo);
    CHECK(recovered->hard_state.value().limbo_index == 6 + small_journal.max_inflight - 1);
  }
  CHECK_FALSE(journal.disk.bytes(segment_path(1) + ".bad").empty());
  auto recovered = recover(journal.disk, {.directory = directory, .cluster = true});
  REQUIRE(recovered);
  auto writer = JournalWriter::open(journal.disk, std::move(*recovered), small_journal, {});
  REQUIRE(writer);
  (*writer)->leave_limbo();
  for (std::int64_t i = 0; i < 20; ++i) (*writer)->poll(i * 1000);
  CHECK((*writer)->hard_state().recovery_state == RecoveryState::normal);
  CHECK(look_at_hard_state(journal.disk, directory)->recovery_state == RecoveryState::normal);
}

TEST_CASE("a power cut at any step of entering limbo never leaves a cut log without it") {
  int cut_logs = 0;
  for (std::uint64_t step = 1; step < 40; ++step) {
    for (std::uint64_t seed = 1; seed <= 4; ++seed) {
      Ambiguous journal;
      journal.disk.fail_at(step, MemoryDisk::Fault::power_cut, EIO);
      const bool started = recover(journal.disk, {.directory = directory, .cluster = true}).has_value();
      MemoryDisk after = journal.disk.after_power_cut(seed);
      const auto again = recover(after, {.directory = directory, .cluster = true});
      REQUIRE_MESSAGE(again, again.error().message);
      CHECK(again->position.index == 5);
      CHECK(again->hard_state.value().recovery_state == RecoveryState::limbo);
      CHECK(again->hard_state.value().limbo_index >= 6);
      if (started) ++cut_logs;
    }
  }
  CHECK(cut_logs > 0);
}

TEST_CASE("an operator's word for a cut changes nothing where there is nothing to give up") {
  MemoryDisk disk;
  std::vector<BatchHeader> history;
  bool closed = false;
  SUBCASE("of a journal that was closed") {
    closed = true;
  }
  SUBCASE("of one that was killed") {}
  {
    auto run = JournalRun::start(disk, directory, history, 1);
    REQUIRE(run);
    for (int i = 0; i < 12; ++i) REQUIRE((*run)->append_random());
    REQUIRE((*run)->settle());
    if (closed) REQUIRE((*run)->writer().close());
  }
  MemoryDisk left = disk.copy();
  const MemoryDisk before = left.copy();
  const auto report = repair_journal(left, directory, true);
  REQUIRE_MESSAGE(report, report.error().message);
  CHECK(report->done.empty());
  CHECK(left.has_files_of(before));
}

TEST_CASE("a stand-alone node is refused an ambiguous tail until an operator accepts the cut") {
  Ambiguous journal;
  CHECK_FALSE(recover(journal.disk, {.directory = directory}));
  const auto asked = repair_journal(journal.disk, directory, false);
  REQUIRE(asked);
  CHECK(asked->done.empty());
  CHECK_FALSE(recover(journal.disk, {.directory = directory}));
  const auto report = repair_journal(journal.disk, directory, true);
  REQUIRE_MESSAGE(report, report.error().message);
  REQUIRE(report->done.size() == 1);
  CHECK(report->done[0].find("the history ends at batch 5") != std::string::npos);
  CHECK(repair_journal(journal.disk, directory, true)->done.empty());
  CHECK_FALSE(journal.disk.bytes(segment_path(1) + ".bad").empty());
  CHECK(recover(journal.disk, {.directory = directory})->position.index == 5);
}

}  // namespace
}  // namespace lockstep
