// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include "journal/testing/journal_run.hpp"
#include "journal/testing/memory_disk.hpp"

namespace lockstep {
namespace {

const std::string directory = "data";

/// Everything a start after a crash owes: all that was acknowledged, nothing that was not appended, the same answer
/// when asked again, and a journal that goes on.
void check_restart(MemoryDisk& disk, std::vector<BatchHeader> history, std::uint64_t acknowledged, bool go_on) {
  auto recovered = recover(disk, {.directory = directory, .seed = 99});
  REQUIRE_MESSAGE(recovered, recovered.error().message);
  const HistoryPosition position = recovered->position;
  REQUIRE(position.index >= acknowledged);
  REQUIRE(position.index <= history.size());
  const auto count = read_and_compare(disk, directory, history);
  REQUIRE_MESSAGE(count, count.error().message);
  REQUIRE(*count == position.index);
  {
    const Recovered ended = std::move(*recovered);
  }
  if (!go_on) return;

  auto run = JournalRun::start(disk, directory, history, 98);
  REQUIRE_MESSAGE(run, run.error().message);
  REQUIRE(history.size() == position.index);
  for (int i = 0; i < 3; ++i) REQUIRE((*run)->append_random());
  REQUIRE((*run)->settle());
  run->reset();
  auto again = recover(disk, {.directory = directory, .seed = 97});
  REQUIRE_MESSAGE(again, again.error().message);
  CHECK(again->position.index == history.size());
  CHECK(read_and_compare(disk, directory, history).value() == history.size());
}

TEST_CASE("T01, T08: a power cut at any moment loses nothing acknowledged and is met without an operator") {
  std::uint64_t states = 0;
  for (std::uint64_t seed = 1; seed <= 8; ++seed) {  // tests/faults has the many
    std::mt19937_64 random(seed);
    MemoryDisk disk(seed);
    disk.shuffle_completions();
    std::vector<BatchHeader> history;
    auto run = JournalRun::start(disk, directory, history, seed);
    REQUIRE_MESSAGE(run, run.error().message);
    for (int turn = 0; turn < 100; ++turn, ++states) {
      if (random() % 3 != 0 && (*run)->writer().can_append()) (*run)->append_random();
      if (random() % 20 == 0) (*run)->advance(2'000'000);
      (*run)->poll();
      MemoryDisk after = disk.after_power_cut(random());
      check_restart(after, history, (*run)->writer().durable_index(), random() % 16 == 0);
    }
  }
  CHECK(states == 800);
}

TEST_CASE("a power cut during the start after a power cut changes nothing about the outcome") {
  for (std::uint64_t seed = 1; seed <= 12; ++seed) {
    MemoryDisk disk(seed);
    disk.shuffle_completions();
    std::vector<BatchHeader> history;
    auto run = JournalRun::start(disk, directory, history, seed);
    REQUIRE_MESSAGE(run, run.error().message);
    for (int i = 0; i < 12; ++i) REQUIRE((*run)->append_random());
    const std::uint64_t acknowledged = (*run)->writer().durable_index();
    for (std::uint64_t nth = 1;; ++nth) {
      MemoryDisk cut = disk.after_power_cut(seed);
      cut.fail_at(nth, MemoryDisk::Fault::power_cut, 0);
      std::vector<BatchHeader> seen = history;
      const bool started = JournalRun::start(cut, directory, seen, 50).has_value();
      MemoryDisk after = cut.after_power_cut(seed + nth);
      check_restart(after, history, acknowledged, true);
      if (started) break;
      REQUIRE(nth < 200);
    }
  }
}

TEST_CASE("T29: a journal whose making was cut short at any step is made at the next start") {
  for (std::uint64_t seed = 1; seed <= 4; ++seed) {
    for (std::uint64_t nth = 1;; ++nth) {
      MemoryDisk disk(seed);
      disk.fail_at(nth, MemoryDisk::Fault::power_cut, 0);
      std::vector<BatchHeader> history;
      const bool started = JournalRun::start(disk, directory, history).has_value();
      MemoryDisk after = disk.after_power_cut(seed);
      check_restart(after, {}, 0, true);
      if (started) break;
      REQUIRE(nth < 100);
    }
  }
}

TEST_CASE("T34, T40: any failed or short write, or failed sync, ends acknowledgement for good, and a restart goes on") {
  using Fault = MemoryDisk::Fault;
  for (const Fault fault : {Fault::error, Fault::short_write}) {
    std::uint64_t failures = 0;
    for (std::uint64_t nth = 1; nth <= 60; ++nth) {
      MemoryDisk disk(nth);
      std::vector<BatchHeader> history;
      auto run = JournalRun::start(disk, directory, history, nth);
      REQUIRE_MESSAGE(run, run.error().message);
      JournalWriter& writer = (*run)->writer();
      disk.fail_at(nth, fault, EIO);
      for (int i = 0; i < 30 && (*run)->append_random(); ++i) {
      }
      (*run)->settle();
      const std::uint64_t acknowledged = writer.durable_index();
      if (writer.failure()) {
        ++failures;
        CHECK(writer.failure()->code == ErrorCode::io);
        for (int i = 0; i < 20; ++i) (*run)->poll();
        CHECK(writer.durable_index() == acknowledged);
        CHECK_FALSE(writer.can_append());
        CHECK_FALSE(writer.close());
      }
      run->reset();
      MemoryDisk after = disk.after_power_cut(nth);
      check_restart(after, history, acknowledged, true);
      check_restart(disk, history, acknowledged, true);
    }
    CHECK(failures > 40);
  }
}

}  // namespace
}  // namespace lockstep
