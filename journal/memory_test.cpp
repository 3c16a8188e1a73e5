// SPDX-License-Identifier: Apache-2.0

/// What reading a journal takes of memory: as much for a long one as for a short one.

#include <doctest/doctest.h>

#include "journal/hash_log.hpp"
#include "journal/inspect.hpp"
#include "journal/skips.hpp"
#include "journal/testing/heap_count.hpp"
#include "journal/testing/journal_run.hpp"
#include "journal/testing/memory_disk.hpp"

namespace lockstep {
namespace {

const std::string directory = "data";
constexpr std::uint32_t batch_bytes = 12000;

struct Size {
  std::uint64_t segment_bytes;
  std::size_t segments;
};

/// A closed journal of that size, and how many batches it holds.
std::uint64_t write_journal(MemoryDisk& disk, const Size& size) {
  std::vector<BatchHeader> history;
  JournalOptions options = small_journal;
  options.segment_bytes = size.segment_bytes;
  options.max_record_bytes = 16 << 10;
  {
    auto run = JournalRun::start(disk, directory, history, 3, options);
    REQUIRE_MESSAGE(run, run.error().message);
    while ((*run)->writer().counters().segments <= size.segments)
      REQUIRE((*run)->append((*run)->maker().make({batch_bytes})));
    REQUIRE((*run)->settle());
    REQUIRE((*run)->writer().close());
  }
  const HardState identity = look_at_hard_state(disk, directory).value();
  REQUIRE(HashLog::open(disk, directory, identity.cluster_id, identity.replica_id, history.size()));
  // With the flag of a skip, whoever asks for skips has to look at all records.
  REQUIRE(append_skip(disk, directory, history.back().first_seq, history.back().first_seq, 0, options));
  return history.size() + 1;
}

/// What `work` holds at most beside what is there before it.
template <class Work>
std::uint64_t peak_of(Work&& work) {
  reset_heap_peak();
  const std::uint64_t before = heap_count().live_bytes;
  work();
  return heap_count().peak_bytes - before;
}

struct Peaks {
  std::uint64_t reader = 0;
  std::uint64_t inspection = 0;
  std::uint64_t skips = 0;
  std::uint64_t start = 0;
};

Peaks measure(const Size& size) {
  MemoryDisk disk;
  const std::uint64_t batches = write_journal(disk, size);
  Peaks peaks;
  peaks.reader = peak_of([&] {
    auto reader = JournalReader::open(disk, directory);
    REQUIRE(reader);
    for (std::uint64_t i = 1; i <= batches; ++i) {
      const auto batch = reader->next();
      REQUIRE(batch);
      REQUIRE(*batch);
      // Asking for anything else leaves what was returned as it is.
      REQUIRE(reader->position().index == (*batch)->header->index);
      static_cast<void>(reader->schema(0));
      REQUIRE_FALSE(batch_defect(**batch));
    }
    REQUIRE_FALSE(*reader->next());
  });
  peaks.inspection = peak_of([&] {
    const auto info = inspect_journal(disk, directory, InspectDepth::records);
    REQUIRE(info);
    REQUIRE(info->last.index == batches);
  });
  peaks.skips = peak_of([&] { REQUIRE(read_skips(disk, directory)->size() == 1); });
  peaks.start = peak_of([&] {
    const auto recovered = recover(disk, {.directory = directory});
    REQUIRE(recovered);
    REQUIRE(recovered->position.index == batches);
  });
  return peaks;
}

/// The name and the span of each segment may be held, nothing of what is in it.
constexpr std::uint64_t bytes_for_a_segment = 1024;
constexpr std::uint64_t slack_bytes = 16 << 10;

void check_bounded(const Size& small, const Size& large) {
  const Peaks less = measure(small);
  const Peaks more = measure(large);
  const std::uint64_t allowed = slack_bytes + bytes_for_a_segment * (large.segments - small.segments);
  CHECK(more.reader <= less.reader + allowed);
  CHECK(more.inspection <= less.inspection + allowed);
  CHECK(more.skips <= less.skips + allowed);
  CHECK(more.start <= less.start + allowed);
  // And so little that a window of a segment is all there can be: 1 MiB read ahead of the block it is for, and twice
  // while it grows.
  CHECK(less.reader > batch_bytes);
  CHECK(more.reader < (3U << 20U));
}

TEST_CASE("T59: eight times as many segments take no more memory to read, inspect or start on") {
  check_bounded({.segment_bytes = min_segment_bytes, .segments = 8},
                {.segment_bytes = min_segment_bytes, .segments = 64});
}

TEST_CASE("T59: a segment eight times as long takes no more memory to read, inspect or start on") {
  check_bounded({.segment_bytes = 4 << 20, .segments = 1}, {.segment_bytes = 32 << 20, .segments = 1});
}

}  // namespace
}  // namespace lockstep
