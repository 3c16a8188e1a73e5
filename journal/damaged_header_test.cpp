// SPDX-License-Identifier: Apache-2.0
#include "journal/damaged_header.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "journal/directory.hpp"
#include "journal/inspect.hpp"
#include "journal/repair.hpp"
#include "journal/testing/journal_run.hpp"
#include "journal/testing/memory_disk.hpp"

namespace lockstep {
namespace {

const std::string directory = "data";

std::string segment_path(std::uint64_t id) {
  return directory + "/" + segment_name(id);
}

/// A journal of 40 batches whose process was killed: sealed segments, one without a SEAL, two spares.
struct Killed {
  Killed() {
    live(1, 40);
    const auto ids = list_journal(disk, directory)->segments;
    last_used = ids.back() - small_journal.spare_segments;
    REQUIRE(last_used >= 3);
  }
  void live(std::uint64_t seed, int batches) {
    auto run = JournalRun::start(disk, directory, history, seed);
    REQUIRE_MESSAGE(run, run.error().message);
    for (int i = 0; i < batches; ++i) REQUIRE((*run)->append_random());
    REQUIRE((*run)->settle());
    (*run)->advance(10'000'000);
    for (int turn = 0; turn < 10; ++turn) (*run)->poll();
  }
  [[nodiscard]] std::vector<std::byte> content(const std::string& path) const {
    const auto bytes = disk.bytes(path);
    return {bytes.begin(), bytes.end()};
  }
  void zero_header(std::uint64_t id) { disk.overwrite(segment_path(id), 0, std::vector<std::byte>(disk_block_bytes)); }
  /// Starts; what was found is in findings. The refusal's code, or nothing.
  [[nodiscard]] std::optional<ErrorCode> refusal() {
    const auto recovered = recover(disk, {.directory = directory}, &findings);
    if (!recovered) return recovered.error().code;
    CHECK(recovered->position.index == 40);
    return std::nullopt;
  }
  void check_starts_whole() {
    REQUIRE_FALSE(refusal());
    CHECK(read_and_compare(disk, directory, history).value() == 40);
    CHECK(inspect_journal(disk, directory, InspectDepth::records)->findings.empty());
  }

  MemoryDisk disk;
  std::vector<BatchHeader> history;
  std::vector<Finding> findings;
  std::uint64_t last_used = 0;
};

TEST_CASE("a header with any one bit flipped is restored as it was, and one of other fields is not made up") {
  Killed journal;
  SegmentHeader header;
  std::memcpy(&header, journal.disk.bytes(segment_path(2)).data(), sizeof header);
  for (std::size_t bit = 0; bit < sizeof header * 8; ++bit) {
    std::vector<std::byte> bytes(sizeof header);
    std::memcpy(bytes.data(), &header, sizeof header);
    bytes[bit / 8] ^= static_cast<std::byte>(1 << bit % 8);
    SegmentHeader damaged;
    std::memcpy(&damaged, bytes.data(), sizeof damaged);
    const auto restored = restored_segment_header(damaged, {});
    REQUIRE_MESSAGE(restored, "bit " << bit);
    CHECK(std::memcmp(&*restored, &header, sizeof header) == 0);
  }
  SegmentHeader other = header;
  other.nonce += 5;
  other.created_ns += 9;
  CHECK_FALSE(restored_segment_header(other, {}));
  std::memset(other.zero, 0x77, sizeof other.zero);
  other.nonce = header.nonce;
  other.created_ns = header.created_ns;
  const auto restored = restored_segment_header(other, {});
  REQUIRE(restored);
  CHECK(std::memcmp(&*restored, &header, sizeof header) == 0);
}

TEST_CASE("damage of a segment that was made ahead is no loss behind one without a SEAL: a start says so and goes on") {
  for (std::uint64_t nth = 1; nth <= small_journal.spare_segments; ++nth) {
    const auto start_after = [&](const auto& damage) {
      Killed journal;
      const std::string file = segment_path(journal.last_used + nth);
      damage(journal, file);
      const auto info = inspect_journal(journal.disk, directory, InspectDepth::records);
      REQUIRE_MESSAGE(info, info.error().message);
      CHECK(info->sound());
      REQUIRE(info->findings.size() == 1);
      CHECK(info->findings[0].file == file);
      CHECK(repair_journal(journal.disk, directory, false)->left.empty());
      REQUIRE_FALSE(journal.refusal());
      REQUIRE(journal.findings.size() == 1);
      CHECK(journal.findings[0].file == file);
      CHECK(journal.findings[0].tail == TailClass::torn);
      CHECK(journal.findings[0].evidence.find("never used") != std::string::npos);
      journal.check_starts_whole();
      journal.live(2, 5);
      CHECK(read_and_compare(journal.disk, directory, journal.history).value() == 45);
    };
    for (std::uint64_t bit = 3; bit < disk_block_bytes * 8; bit += 701)
      start_after([&](Killed& journal, const std::string& file) { journal.disk.flip_bit(file, bit); });
    start_after([](Killed& journal, const std::string& file) {
      journal.disk.overwrite(file, 0, std::vector<std::byte>(disk_block_bytes));
    });
    for (const std::size_t bytes : {512U, 4096U, 9000U})
      for (const std::uint64_t at : {4096U, 8192U, 20480U})
        start_after([&](Killed& journal, const std::string& file) {
          journal.disk.overwrite(file, at, std::vector<std::byte>(bytes, std::byte{0xa7}));
        });
    start_after([](Killed& journal, const std::string& file) {
      journal.disk.overwrite(file, 0, std::vector<std::byte>(3 * disk_block_bytes, std::byte{0xa7}));
    });
    start_after([](Killed& journal, const std::string& file) {
      journal.disk.overwrite(file, 4096, journal.content(segment_path(2)));
    });
    start_after([](Killed& journal, const std::string& file) { REQUIRE(journal.disk.remove(file)); });
    for (const std::size_t bytes : {0U, 100U, 4096U, 20000U})
      start_after([&](Killed& journal, const std::string& file) {
        const auto whole = journal.content(file);
        journal.disk.put(file, {whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(bytes)});
      });
  }
}

TEST_CASE("behind a SEAL a damaged segment is taken for unused only when it shows that itself") {
  const auto sealed = [](Killed& journal) {
    journal.live(2, 0);  // seals what was there and makes spares, of which none is used
    return journal.last_used + 1;
  };
  SUBCASE("a flipped bit of its header") {
    Killed journal;
    const std::uint64_t id = sealed(journal);
    journal.disk.flip_bit(segment_path(id), 70 * 8);
    journal.check_starts_whole();
  }
  SUBCASE("a lost header: the operator's word is asked for, and helps") {
    Killed journal;
    const std::uint64_t id = sealed(journal);
    journal.zero_header(id);
    const auto damaged = journal.content(segment_path(id));
    CHECK(journal.refusal() == ErrorCode::ambiguous);
    REQUIRE(journal.findings.size() == 1);
    CHECK(journal.findings[0].file == segment_path(id));
    CHECK_FALSE(inspect_journal(journal.disk, directory, InspectDepth::records)->sound());
    CHECK(repair_journal(journal.disk, directory, false)->done.empty());
    CHECK(journal.content(segment_path(id)) == damaged);
    CHECK(repair_journal(journal.disk, directory, true)->done.size() == 1);
    CHECK(journal.content(segment_path(id) + ".bad") == damaged);
    journal.check_starts_whole();
  }
  SUBCASE("a lost header, in a cluster: it may have acknowledged as much as a segment holds") {
    Killed journal;
    journal.zero_header(sealed(journal));
    const auto recovered = recover(journal.disk, {.directory = directory, .cluster = true});
    REQUIRE_MESSAGE(recovered, recovered.error().message);
    CHECK(recovered->hard_state.value().recovery_state == RecoveryState::limbo);
    CHECK(recovered->hard_state.value().limbo_index >= 40 + small_journal.segment_bytes / disk_block_bytes - 2);
  }
  SUBCASE("bytes that are no block of it: the operator's word is asked for, and helps") {
    Killed journal;
    const std::uint64_t id = sealed(journal);
    journal.disk.overwrite(segment_path(id), 4096, std::vector<std::byte>(4096, std::byte{0xa7}));
    const auto damaged = journal.content(segment_path(id));
    CHECK(journal.refusal() == ErrorCode::ambiguous);
    REQUIRE(journal.findings.size() == 1);
    CHECK(journal.findings[0].file == segment_path(id));
    const auto info = inspect_journal(journal.disk, directory, InspectDepth::records);
    REQUIRE(info->findings.size() == 1);
    CHECK(info->findings[0].file == segment_path(id));
    CHECK(repair_journal(journal.disk, directory, false)->done.empty());
    CHECK(repair_journal(journal.disk, directory, true)->done.size() == 1);
    CHECK(journal.content(segment_path(id) + ".bad") == damaged);
    journal.check_starts_whole();
  }
  SUBCASE("behind a spare that is as it was made, anything") {
    Killed journal;
    const std::uint64_t id = sealed(journal) + 1;
    journal.disk.overwrite(segment_path(id), 4096, std::vector<std::byte>(512, std::byte{0xa7}));
    REQUIRE_FALSE(journal.refusal());
    REQUIRE(journal.findings.size() == 1);
    CHECK(journal.findings[0].file == segment_path(id));
    CHECK(journal.findings[0].tail == TailClass::torn);
    journal.check_starts_whole();
  }
  SUBCASE("a lost file") {
    Killed journal;
    const std::uint64_t id = sealed(journal);
    REQUIRE(journal.disk.remove(segment_path(id)));
    CHECK(journal.refusal() == ErrorCode::corrupt);
    REQUIRE(journal.findings.size() == 1);
    CHECK(journal.findings[0].file == segment_path(id));
    const auto report = repair_journal(journal.disk, directory, true);
    REQUIRE(report);
    REQUIRE(report->left.size() == 1);
    CHECK(report->left[0].segment_id == id);
  }
}

TEST_CASE("a segment of another cluster, in a used one's or a spare's place, is incompatible to all who look at it") {
  Killed other;
  for (const std::uint64_t id : {std::uint64_t{1}, other.last_used, other.last_used + 1}) {
    Killed journal;
    SegmentHeader header;
    const auto bytes = journal.content(segment_path(id));
    std::memcpy(&header, bytes.data(), sizeof header);
    header.cluster_id.low ^= 5;
    finish_segment_header(header);
    journal.disk.overwrite(segment_path(id), 0, object_bytes(header));
    const auto check = [&](const Error& error) {
      CHECK(error.code == ErrorCode::incompatible);
      CHECK(error.message.find(segment_path(id)) != std::string::npos);
      CHECK(error.message.find("put the right file back") != std::string::npos);
    };
    const auto started = recover(journal.disk, {.directory = directory});
    REQUIRE_FALSE(started);
    check(started.error());
    const auto info = inspect_journal(journal.disk, directory, InspectDepth::records);
    REQUIRE_FALSE(info);
    check(info.error());
    for (const bool accept_tail : {false, true}) {
      const auto report = repair_journal(journal.disk, directory, accept_tail);
      REQUIRE_FALSE(report);
      check(report.error());
    }
  }
}

TEST_CASE("a last segment that lost all its blocks is a hole: repair does not send back to itself") {
  Killed journal;
  {
    auto hard_state = HardStateFile::open(journal.disk, directory);
    HardState next = hard_state->value();
    next.durable_index = 40;
    next.durable_chain = journal.history.back().chain;
    REQUIRE(hard_state->store(next));
  }
  const std::string file = segment_path(journal.last_used);
  const auto whole = journal.content(file);
  journal.disk.put(file, {whole.begin(), whole.begin() + 4096});
  REQUIRE(journal.refusal() == ErrorCode::corrupt);
  for (const bool accept_tail : {false, true}) {
    const auto report = repair_journal(journal.disk, directory, accept_tail);
    REQUIRE_MESSAGE(report, report.error().message);
    CHECK(report->done.empty());
    REQUIRE(report->left.size() == 1);
    CHECK(report->left[0].segment_id == journal.last_used);
    CHECK(report->left[0].last_index == 40);
  }
}

TEST_CASE("a used segment's header with a flipped bit is named as the damage, and repair makes the file what it was") {
  for (const std::uint64_t from_end : {0U, 1U, 2U}) {
    for (std::uint64_t bit = 5; bit < disk_block_bytes * 8; bit += 997) {
      Killed journal;
      const std::string file = segment_path(journal.last_used - from_end);
      const auto before = journal.content(file);
      journal.disk.flip_bit(file, bit);
      const auto damaged = journal.content(file);
      REQUIRE(journal.refusal() == ErrorCode::corrupt);
      CHECK(journal.findings[0].file == file);
      const auto info = inspect_journal(journal.disk, directory, InspectDepth::records);
      REQUIRE(info);
      REQUIRE(info->findings.size() == 1);
      CHECK(info->findings[0].file == file);
      CHECK(info->last.index == 40);
      const auto report = repair_journal(journal.disk, directory, false);
      REQUIRE_MESSAGE(report, report.error().message);
      CHECK(report->done.size() == 1);
      CHECK(report->left.empty());
      CHECK(journal.content(file) == before);
      CHECK(journal.content(file + ".bad") == damaged);
      CHECK(repair_journal(journal.disk, directory, false)->done.empty());
      journal.check_starts_whole();
    }
  }
}

TEST_CASE("a second repair of a segment keeps the first one's damaged file too, and no file twice") {
  Killed journal;
  const std::string file = segment_path(journal.last_used);
  std::vector<std::vector<std::byte>> damaged;
  for (const std::uint64_t bit : {100U, 200U, 100U}) {
    journal.disk.flip_bit(file, bit);
    damaged.push_back(journal.content(file));
    REQUIRE(repair_journal(journal.disk, directory, false)->done.size() == 1);
  }
  CHECK(journal.content(file + ".bad") == damaged[0]);
  CHECK(journal.content(file + ".2.bad") == damaged[1]);
  const auto names = journal.disk.list(directory);
  REQUIRE(names);
  CHECK(std::ranges::count_if(*names, [](const std::string& name) { return name.ends_with(".bad"); }) == 2);
  CHECK(std::ranges::none_of(*names, [](const std::string& name) { return name.ends_with(".tmp"); }));
  journal.check_starts_whole();
}

TEST_CASE("a used segment whose header is gone is written anew from its blocks, and so are two side by side") {
  for (const std::vector<std::uint64_t>& lost :
       std::vector<std::vector<std::uint64_t>>{{1}, {2}, {0}, {1, 2}, {0, 1}}) {
    Killed journal;
    for (const std::uint64_t back : lost) {
      std::vector<std::byte> sector(disk_block_bytes, std::byte{back == 0 ? std::uint8_t{0} : std::uint8_t{0x6b}});
      journal.disk.overwrite(segment_path(journal.last_used - back), 0, sector);
    }
    CHECK(journal.refusal() == ErrorCode::corrupt);
    const auto info = inspect_journal(journal.disk, directory, InspectDepth::records);
    REQUIRE(info);
    CHECK(info->findings.size() == lost.size());
    CHECK(info->last.index == 40);
    const auto report = repair_journal(journal.disk, directory, false);
    REQUIRE_MESSAGE(report, report.error().message);
    CHECK(report->done.size() == lost.size());
    CHECK(report->left.empty());
    journal.check_starts_whole();
  }
}

TEST_CASE("a lost header is no reason to cut what may have been acknowledged") {
  Killed journal;
  const std::string file = segment_path(journal.last_used);
  const auto bytes = journal.content(file);
  std::uint64_t end = bytes.size();
  while (end > 0 && bytes[end - 1] == std::byte{0}) --end;
  journal.disk.overwrite(file, round_up_to_block(end), std::vector<std::byte>(disk_block_bytes, std::byte{0x31}));
  journal.zero_header(journal.last_used);
  const auto damaged = journal.content(file);
  const auto asked = repair_journal(journal.disk, directory, false);
  REQUIRE_MESSAGE(asked, asked.error().message);
  CHECK(asked->done.empty());
  CHECK(journal.content(file) == damaged);
  const auto report = repair_journal(journal.disk, directory, true);
  REQUIRE_MESSAGE(report, report.error().message);
  CHECK(report->left.empty());
  journal.check_starts_whole();
}

TEST_CASE("a reader tells of a damaged header once and then gives every batch, wherever it begins") {
  for (const std::uint64_t from : {1U, 15U, 39U}) {
    for (const bool gone : {false, true}) {
      Killed journal;
      if (gone)
        journal.zero_header(2);
      else
        journal.disk.flip_bit(segment_path(2), 66 * 8 + 1);
      auto reader = JournalReader::open(journal.disk, directory, from);
      REQUIRE_MESSAGE(reader, reader.error().message);
      int told = 0;
      for (std::uint64_t expected = from; expected <= 40;) {
        const auto batch = reader->next();
        if (batch) {
          REQUIRE(*batch);
          CHECK((*batch)->header->index == expected++);
          continue;
        }
        CHECK(batch.error().message.find(segment_name(2)) != std::string::npos);
        REQUIRE(++told == 1);
        CHECK(reader->pass_damage().value());
      }
      CHECK_FALSE(reader->next().value());
      CHECK((told == 1 || from > 1));
    }
  }
}

TEST_CASE("a power cut at any step of a start that passes over a damaged spare is not refused afterwards") {
  for (std::uint64_t step = 1; step < 30; ++step) {
    for (std::uint64_t seed = 1; seed <= 4; ++seed) {
      Killed journal;
      journal.zero_header(journal.last_used + 1);
      journal.disk.fail_at(step, DiskFault::power_cut, EIO);
      static_cast<void>(journal.refusal());
      journal.disk = journal.disk.after_power_cut(seed);
      CAPTURE(step);
      journal.check_starts_whole();
    }
  }
}

TEST_CASE("a power cut at any step of a header's repair leaves the damaged file or the repaired one") {
  for (std::uint64_t step = 1; step < 30; ++step) {
    for (std::uint64_t seed = 1; seed <= 4; ++seed) {
      Killed journal;
      journal.disk.flip_bit(segment_path(2), 900);
      journal.disk.fail_at(step, DiskFault::power_cut, EIO);
      const bool done = repair_journal(journal.disk, directory, false).has_value();
      journal.disk = journal.disk.after_power_cut(seed);
      const auto again = repair_journal(journal.disk, directory, false);
      REQUIRE_MESSAGE(again, again.error().message);
      CHECK((!done || again->done.empty()));
      CHECK(again->left.empty());
      journal.check_starts_whole();
    }
  }
}

}  // namespace
}  // namespace lockstep
