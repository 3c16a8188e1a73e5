// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "journal/directory.hpp"
#include "journal/holes.hpp"
#include "journal/inspect.hpp"
#include "journal/testing/journal_run.hpp"
#include "journal/testing/memory_disk.hpp"

namespace lockstep {
namespace {

const std::string directory = "data";

/// A member's journal, with a model of its history beside it.
struct Member {
  explicit Member(int batches, std::uint64_t seed = 1) : maker(seed) {
    start(seed);
    append(batches);
  }
  void start(std::uint64_t seed) {
    writer.reset();
    auto recovered = recover(disk, {.directory = directory, .cluster = true, .seed = seed});
    REQUIRE_MESSAGE(recovered, recovered.error().message);
    REQUIRE(recovered->position.index == history.size());
    auto opened = JournalWriter::open(disk, std::move(*recovered), small_journal, {});
    REQUIRE(opened);
    writer = std::move(*opened);
  }
  void poll(int turns = 1) {
    for (int i = 0; i < turns; ++i) writer->poll(now_ns += 1000);
  }
  bool wait(auto until) {
    for (int turn = 0; turn < 500; ++turn) {
      if (until()) return true;
      if (writer->failure()) return false;
      poll();
    }
    return false;
  }
  bool append_one() {
    if (!wait([&] { return writer->can_append(); })) return false;
    alive.push_back(maker.make({1500}));
    history.push_back(alive.back().header);
    writer->append(alive.back().view());
    return true;
  }
  bool settle() {
    return wait([&] { return writer->durable_index() == history.size() && !writer->truncating(); });
  }
  void append(int batches) {
    for (int i = 0; i < batches; ++i) REQUIRE(append_one());
    REQUIRE(settle());
  }
  /// Another leader's history goes on from batch `index`.
  Result<void> go_back(std::uint64_t index) {
    const HistoryPosition target = index == 0 ? HistoryPosition{} : position_after(history[index - 1]);
    if (auto asked = writer->truncate_to(target); !asked) return asked;
    history.resize(index);
    maker = BatchMaker(1000 + ++elections, target);
    return {};
  }
  void check_history(MemoryDisk& where) {
    CHECK(read_and_compare(where, directory, history).value() == history.size());
    const auto info = inspect_journal(where, directory, InspectDepth::records);
    REQUIRE_MESSAGE(info, info.error().message);
    CHECK(info->sound());
    CHECK(info->last.index == history.size());
    CHECK(find_holes(where, directory)->empty());
  }

  MemoryDisk disk;
  BatchMaker maker;
  std::vector<BatchHeader> history;
  std::deque<OwnedBatch> alive;
  std::unique_ptr<JournalWriter> writer;
  std::int64_t now_ns = 0;
  std::uint64_t elections = 0;
};

TEST_CASE("a suffix that lost an election is taken back, and the history goes on from there") {
  Member member(10);
  REQUIRE(member.go_back(7));
  member.append(4);
  member.check_history(member.disk);
  CHECK(member.history.size() == 11);
  REQUIRE(member.go_back(5));
  REQUIRE(member.settle());
  member.check_history(member.disk);
  member.append(20);
  for (std::uint64_t life = 2; life < 5; ++life) {
    member.start(life);
    member.append(3);
    member.check_history(member.disk);
  }
}

TEST_CASE("reading from any batch passes over those that were taken back") {
  Member member(30);
  REQUIRE(member.go_back(12));
  member.append(25);
  REQUIRE(member.go_back(20));
  member.append(9);
  for (std::uint64_t from = 1; from <= member.history.size(); ++from) {
    auto reader = JournalReader::open(member.disk, directory, from);
    REQUIRE_MESSAGE(reader, reader.error().message);
    for (std::uint64_t index = from; index <= member.history.size(); ++index) {
      const auto batch = reader->next();
      REQUIRE_MESSAGE(batch, batch.error().message);
      REQUIRE(*batch);
      REQUIRE(std::memcmp((*batch)->header, &member.history[index - 1], sizeof(BatchHeader)) == 0);
    }
    CHECK_FALSE(reader->next().value());
  }
}

TEST_CASE("what was committed is never taken back, and nothing is taken forward") {
  Member member(10);
  member.writer->set_commit_index(8);
  CHECK(member.writer->truncate_to(position_after(member.history[6])).error().code == ErrorCode::usage);
  HistoryPosition ahead = position_after(member.history[9]);
  ++ahead.index;
  CHECK(member.writer->truncate_to(ahead).error().code == ErrorCode::usage);
  REQUIRE(member.go_back(8));
  member.append(3);
  member.check_history(member.disk);
}

TEST_CASE("a TRUNCATE that takes back what a later block states as committed is damage") {
  Member member(10);
  member.writer->set_commit_index(9);
  member.append(1);
  // What a faulty program might do.
  member.writer.reset();
  auto recovered = recover(member.disk, {.directory = directory, .cluster = true, .seed = 5});
  REQUIRE(recovered);
  auto writer = JournalWriter::open(member.disk, std::move(*recovered), small_journal, {});
  REQUIRE(writer);
  REQUIRE((*writer)->truncate_to(position_after(member.history[3])));
  for (std::int64_t i = 0; i < 50; ++i) (*writer)->poll(i * 1000);
  CHECK_FALSE((*writer)->truncating());
  writer->reset();
  const auto refused = recover(member.disk, {.directory = directory});
  REQUIRE_FALSE(refused);
  CHECK(refused.error().message.find("takes back what was committed") != std::string::npos);
}

TEST_CASE("T33: a TRUNCATE may be the first or the last block of a segment") {
  // Each batch is a sector: the number of batches decides where the TRUNCATE comes to lie.
  bool was_first = false;
  bool was_last = false;
  for (int batches = 1; batches <= 32; ++batches) {
    Member member(batches);
    REQUIRE(member.go_back(static_cast<std::uint64_t>(batches) / 2));
    REQUIRE(member.settle());
    const std::uint64_t newest = member.writer->hard_state().newest_segment_id;
    for (std::uint64_t id = 1; id <= newest; ++id) {
      const auto bytes = member.disk.bytes(directory + "/" + segment_name(id));
      for (std::uint64_t at = sizeof(SegmentHeader); at < bytes.size(); at += disk_block_bytes) {
        BlockHeader header;
        std::memcpy(&header, bytes.data() + at, sizeof header);
        if (header.magic != block_magic || header.type != BlockType::truncate) continue;
        was_first = was_first || header.block_no == 1;
        was_last = was_last || at + 2 * disk_block_bytes == bytes.size();
      }
    }
    member.append(2);
    member.check_history(member.disk);
    member.start(9);
    member.append(2);
    member.check_history(member.disk);
  }
  CHECK(was_first);
  CHECK(was_last);
}

TEST_CASE("T31: a power cut at any step of taking back leaves the old suffix or the new one, never a mix") {
  int old_suffix = 0;
  int new_suffix = 0;
  int neither = 0;
  for (std::uint64_t step = 1;; ++step) {
    Member member(13);
    const std::vector<BatchHeader> before = member.history;
    member.disk.fail_at(step, MemoryDisk::Fault::power_cut, EIO);
    REQUIRE(member.go_back(6));
    bool done = true;
    for (int i = 0; i < 5 && done; ++i) done = member.append_one();
    done = done && member.settle();
    for (std::uint64_t seed = 1; seed <= 6; ++seed) {
      MemoryDisk after = member.disk.after_power_cut(seed);
      const auto recovered = recover(after, {.directory = directory});
      REQUIRE_MESSAGE(recovered, recovered.error().message);
      const std::uint64_t last = recovered->position.index;
      const auto agrees = [&](const std::vector<BatchHeader>& history) {
        return last <= history.size() && (last == 0 || recovered->position.chain == history[last - 1].chain);
      };
      const bool is_old = last == before.size() && agrees(before);
      const bool is_new = last >= 6 && agrees(member.history);
      CHECK((is_old || is_new));
      if (is_old) ++old_suffix;
      if (is_new && last > 6) ++new_suffix;
      if (is_new && last == 6) ++neither;
      const std::vector<BatchHeader>& expected = is_old ? before : member.history;
      CHECK(read_and_compare(after, directory, expected).value() == last);
    }
    if (done) break;
  }
  CHECK(old_suffix > 0);
  CHECK(new_suffix > 0);
  CHECK(neither > 0);
}

}  // namespace
}  // namespace lockstep
