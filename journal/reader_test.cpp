// SPDX-License-Identifier: Apache-2.0
#include "journal/reader.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cstring>
#include <ranges>

#include "journal/directory.hpp"
#include "journal/inspect.hpp"
#include "journal/posix_disk.hpp"
#include "journal/testing/journal_run.hpp"
#include "journal/testing/memory_disk.hpp"
#include "journal/testing/scratch_directory.hpp"

namespace lockstep {
namespace {

const std::string directory = "data";

TEST_CASE("T65: a reader follows a live journal over rolls, and reads each batch as soon as it is written") {
  const ScratchDirectory scratch;
  const std::string data = scratch.file("data");
  PosixDisk disk;
  PosixDisk readers_disk;
  std::vector<BatchHeader> history;
  auto run = JournalRun::start(disk, data, history, 4);
  REQUIRE_MESSAGE(run, run.error().message);
  auto reader = JournalReader::open(readers_disk, data);
  REQUIRE_MESSAGE(reader, reader.error().message);
  CHECK_FALSE(reader->next().value());
  for (int i = 0; i < 60; ++i) {
    REQUIRE((*run)->append_random());
    if (i % 3 != 0) continue;
    REQUIRE((*run)->settle());
    while (reader->position().index < history.size()) {
      const auto batch = reader->next();
      REQUIRE_MESSAGE(batch, batch.error().message);
      REQUIRE(*batch);
      CHECK(std::memcmp((*batch)->header, &history[reader->position().index - 1], sizeof(BatchHeader)) == 0);
    }
    CHECK_FALSE(reader->next().value());
    const auto info = inspect_journal(readers_disk, data, InspectDepth::records);
    REQUIRE_MESSAGE(info, info.error().message);
    CHECK(info->sound());
    CHECK(info->last.index == history.size());
  }
}

TEST_CASE("a reader that waits at the end goes on into what the next process writes") {
  MemoryDisk disk;
  std::vector<BatchHeader> history;
  auto first = JournalRun::start(disk, directory, history, 1);
  REQUIRE(first);
  REQUIRE((*first)->append_random());
  REQUIRE((*first)->settle());
  auto reader = JournalReader::open(disk, directory);
  REQUIRE(reader);
  REQUIRE(reader->next().value());
  CHECK_FALSE(reader->next().value());
  first->reset();
  auto second = JournalRun::start(disk, directory, history, 2);
  REQUIRE(second);
  CHECK_FALSE(reader->next().value());
  REQUIRE((*second)->append_random());
  REQUIRE((*second)->settle());
  const auto batch = reader->next();
  REQUIRE_MESSAGE(batch, batch.error().message);
  REQUIRE(*batch);
  CHECK((*batch)->header->index == 2);
}

TEST_CASE("reading may start at any batch") {
  MemoryDisk disk;
  std::vector<BatchHeader> history;
  auto run = JournalRun::start(disk, directory, history);
  REQUIRE(run);
  for (int i = 0; i < 40; ++i) REQUIRE((*run)->append_random());
  REQUIRE((*run)->settle());
  for (std::uint64_t from = 1; from <= 41; ++from) {
    auto reader = JournalReader::open(disk, directory, from);
    REQUIRE_MESSAGE(reader, reader.error().message);
    const auto batch = reader->next();
    REQUIRE(batch);
    if (from <= 40) CHECK((*batch)->header->index == from);
    if (from == 41) CHECK_FALSE(*batch);
  }
}

TEST_CASE("a torn tail is an end, with a note; damage before the end is an error") {
  MemoryDisk disk;
  std::vector<BatchHeader> history;
  auto run = JournalRun::start(disk, directory, history);
  REQUIRE(run);
  for (int i = 0; i < 4; ++i) {
    REQUIRE((*run)->append((*run)->maker().make({5000})));
    REQUIRE((*run)->settle());
  }
  const std::string path = directory + "/" + segment_name(1);
  constexpr std::uint64_t batch_bytes = block_total_bytes(record_bytes(5000));
  const std::uint64_t last = sizeof(SegmentHeader) + 3 * batch_bytes;
  const auto original = std::vector(disk.bytes(path).begin(), disk.bytes(path).end());

  disk.overwrite(path, last + 2 * disk_block_bytes, std::vector<std::byte>(512));
  CHECK(read_and_compare(disk, directory, history).value() == 3);
  auto reader = JournalReader::open(disk, directory, 4);
  CHECK_FALSE(reader->next().value());
  REQUIRE(reader->tail());
  CHECK(reader->tail()->tail == TailClass::torn);
  CHECK(reader->tail()->index == 4);
  CHECK(reader->tail()->offset == last + 2 * disk_block_bytes);

  disk.put(path, original);
  disk.overwrite(path, sizeof(SegmentHeader) + 5000, std::vector<std::byte>(512));
  const auto damaged = read_and_compare(disk, directory, history);
  REQUIRE_FALSE(damaged);
  CHECK(damaged.error().code == ErrorCode::corrupt);
  CHECK(damaged.error().message.find("block 1, batch 1: corrupt") != std::string::npos);
}

TEST_CASE("T65: an inspection goes past damage and lists all of it") {
  MemoryDisk disk;
  std::vector<BatchHeader> history;
  auto run = JournalRun::start(disk, directory, history);
  REQUIRE(run);
  for (int i = 0; i < 60; ++i) REQUIRE((*run)->append((*run)->maker().make({5000})));
  REQUIRE((*run)->settle());
  const auto info = inspect_journal(disk, directory, InspectDepth::records);
  REQUIRE_MESSAGE(info, info.error().message);
  CHECK(info->sound());
  CHECK(info->last.index == 60);
  std::uint64_t batches = 0;
  for (const SegmentInfo& segment : info->segments) batches += segment.batches;
  CHECK(batches == 60);

  constexpr std::uint64_t batch_bytes = block_total_bytes(record_bytes(5000));
  const std::string first = directory + "/" + segment_name(1);
  const std::string second = directory + "/" + segment_name(2);
  disk.overwrite(first, sizeof(SegmentHeader) + batch_bytes + 6000, std::vector(1, std::byte{0xee}));
  disk.overwrite(first, sizeof(SegmentHeader) + 3 * batch_bytes + 100, std::vector(1, std::byte{0xee}));
  disk.overwrite(second, sizeof(SegmentHeader) + 2 * batch_bytes + 6000, std::vector(1, std::byte{0xee}));
  const auto damaged = inspect_journal(disk, directory, InspectDepth::records);
  REQUIRE_MESSAGE(damaged, damaged.error().message);
  CHECK_FALSE(damaged->sound());
  REQUIRE(damaged->findings.size() == 3);
  CHECK((damaged->findings[0].file == first && damaged->findings[0].block == 2));
  CHECK((damaged->findings[1].file == first && damaged->findings[1].block == 4));
  CHECK((damaged->findings[2].file == second && damaged->findings[2].block == 3));
  CHECK(damaged->last.index == 1);
  std::uint64_t readable = 0;
  for (const SegmentInfo& segment : damaged->segments) readable += segment.batches;
  CHECK(readable == 57);
}

TEST_CASE(
    "a segment cut down to its header is not one made ahead: reading ends there with a note, and no start takes it") {
  MemoryDisk disk;
  std::vector<BatchHeader> history;
  {
    auto run = JournalRun::start(disk, directory, history);
    REQUIRE(run);
    for (int i = 0; i < 60; ++i) REQUIRE((*run)->append((*run)->maker().make({5000})));
    REQUIRE((*run)->settle());
  }
  const auto info = inspect_journal(disk, directory, InspectDepth::records);
  REQUIRE(info);
  const auto last = std::ranges::find_if(std::views::reverse(info->segments),
                                         [](const SegmentInfo& segment) { return segment.batches > 0; });
  REQUIRE(last->segment_id > 1);
  const std::string path = directory + "/" + segment_name(last->segment_id);
  const auto header = disk.bytes(path).first(sizeof(SegmentHeader));
  disk.put(path, {header.begin(), header.end()});

  auto reader = JournalReader::open(disk, directory);
  REQUIRE_MESSAGE(reader, reader.error().message);
  auto batch = reader->next();
  while (batch && *batch) batch = reader->next();
  CHECK(reader->position().index < history.size());
  REQUIRE((!batch || reader->tail()));
  CHECK((batch ? reader->tail()->evidence : batch.error().message).find("shorter than it was made") !=
        std::string::npos);
  CHECK_FALSE(inspect_journal(disk, directory, InspectDepth::records)->sound());
  CHECK_FALSE(JournalRun::start(disk, directory, history, 2));
}

TEST_CASE("T25: a reader misses the oldest segment, and is not content with an empty one in a used one's place") {
  MemoryDisk disk;
  std::vector<BatchHeader> history;
  {
    auto run = JournalRun::start(disk, directory, history);
    REQUIRE(run);
    for (int i = 0; i < 40; ++i) REQUIRE((*run)->append_random());
    REQUIRE((*run)->settle());
  }
  const auto ids = list_journal(disk, directory)->segments;
  SUBCASE("the oldest is gone") {
    REQUIRE(disk.remove(directory + "/" + segment_name(1)));
    for (const std::uint64_t from : {0U, 1U}) {
      const auto reader = JournalReader::open(disk, directory, from);
      REQUIRE_FALSE(reader);
      CHECK(reader.error().code == ErrorCode::corrupt);
      CHECK(reader.error().message.find(segment_name(1) + " is missing") != std::string::npos);
    }
  }
  SUBCASE("a spare one took the last used one's name") {
    const std::uint64_t last_used = ids[ids.size() - 1 - small_journal.spare_segments];
    REQUIRE(disk.rename(directory + "/" + segment_name(ids.back()), directory + "/" + segment_name(last_used)));
    const auto read = read_and_compare(disk, directory, history);
    REQUIRE_FALSE(read);
    CHECK(read.error().code == ErrorCode::corrupt);
  }
}

TEST_CASE("a directory without a journal is refused by name") {
  MemoryDisk disk;
  REQUIRE(disk.make_directory(directory));
  const auto reader = JournalReader::open(disk, directory);
  REQUIRE_FALSE(reader);
  CHECK(reader.error().message.find("data holds no journal") != std::string::npos);
  CHECK_FALSE(inspect_journal(disk, directory, InspectDepth::blocks));
}

}  // namespace
}  // namespace lockstep
