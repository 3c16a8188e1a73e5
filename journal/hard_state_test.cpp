// SPDX-License-Identifier: Apache-2.0
#include "journal/hard_state.hpp"

#include <doctest/doctest.h>

#include <cerrno>
#include <cstring>
#include <functional>

#include "journal/testing/memory_disk.hpp"

namespace lockstep {
namespace {

const std::string path = "data/hardstate";

MemoryDisk new_disk() {
  MemoryDisk disk;
  REQUIRE(disk.make_directory("data"));
  HardState first;
  first.term = 1;
  REQUIRE(HardStateFile::create(disk, "data", first));
  return disk;
}

std::vector<std::byte> copy_at(const MemoryDisk& disk, std::uint64_t offset) {
  const auto bytes = disk.bytes(path).subspan(offset, disk_block_bytes);
  return {bytes.begin(), bytes.end()};
}

void store_term(Disk& disk, std::uint64_t term) {
  auto file = HardStateFile::open(disk, "data");
  REQUIRE(file);
  HardState next = file->value();
  next.term = term;
  REQUIRE(file->store(next));
}

/// Sets the checksum right after a change, as a newer program would have.
void rewrite(MemoryDisk& disk, const std::function<void(HardState&)>& change, bool second_copy_too) {
  HardState state;
  std::memcpy(&state, disk.bytes(path).data(), sizeof state);
  change(state);
  state.checksum = xxh3_128(std::as_bytes(std::span(&state, 1)).subspan(sizeof(Digest)));
  disk.overwrite(path, 0, std::as_bytes(std::span(&state, 1)));
  state.copy = 1;
  if (second_copy_too) disk.overwrite(path, hard_state_second_copy, std::as_bytes(std::span(&state, 1)));
}

TEST_CASE("what was stored is read again, with the sequence counted up") {
  MemoryDisk disk = new_disk();
  store_term(disk, 7);
  const auto file = HardStateFile::open(disk, "data");
  REQUIRE(file);
  CHECK(file->value().term == 7);
  CHECK(file->value().sequence == 2);
}

TEST_CASE("T42: a power cut at any step of a store, and one lost or rotten copy, never forget an acknowledged value") {
  std::uint64_t states = 0;
  for (std::uint64_t nth = 1; nth <= 5; ++nth) {  // write, sync, write, sync; 5 is none
    for (std::uint64_t seed = 0; seed < 20; ++seed) {
      MemoryDisk disk = new_disk();
      store_term(disk, 2);
      const auto old_copies = std::vector{copy_at(disk, 0), copy_at(disk, hard_state_second_copy)};
      bool acknowledged = false;
      {
        auto file = HardStateFile::open(disk, "data");
        REQUIRE(file);
        HardState next = file->value();
        next.term = 3;
        disk.fail_at(nth, MemoryDisk::Fault::power_cut, 0);
        acknowledged = file->store(next).has_value();
      }
      CHECK(acknowledged == (nth == 5));
      for (int fault = 0; fault < 5; ++fault, ++states) {
        MemoryDisk after = disk.after_power_cut(seed);
        const std::uint64_t offset = fault % 2 == 0 ? 0 : hard_state_second_copy;
        if (fault < 2) after.overwrite(path, offset + 100, std::vector(1, std::byte{0x55}));
        if (fault >= 2 && fault < 4) after.overwrite(path, offset, old_copies[static_cast<std::size_t>(fault % 2)]);
        const auto file = HardStateFile::open(after, "data");
        if (acknowledged) CHECK_MESSAGE((file && file->value().term == 3), "an acknowledged value was forgotten");
        if (file) CHECK(file->value().term >= 2);
        if (fault == 4) CHECK_MESSAGE(file, "a power cut alone refuses nothing");
      }
    }
  }
  CHECK(states == 500);
}

TEST_CASE("T42: any number of stores cut short, one after the other, leaves a hard state that opens") {
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    std::mt19937_64 random(seed);
    MemoryDisk disk = new_disk();
    std::uint64_t stored = 1;
    for (int crash = 0; crash < 12; ++crash) {
      {
        auto file = HardStateFile::open(disk, "data");
        REQUIRE_MESSAGE(file, "seed " << seed << ": " << file.error().message);
        REQUIRE(file->value().term >= stored);
        HardState next = file->value();
        next.term = std::max(next.term, stored) + 1;
        disk.fail_at(1 + random() % 7, MemoryDisk::Fault::power_cut, 0);
        if (file->store(next)) stored = next.term;
      }
      disk = disk.after_power_cut(random());
    }
  }
}

TEST_CASE("T42: a damaged copy is written before the good one, so a crash then never leaves two bad ones") {
  for (std::uint64_t damaged = 0; damaged < 2; ++damaged) {
    for (std::uint64_t nth = 1; nth <= 7; ++nth) {
      for (std::uint64_t seed = 0; seed < 10; ++seed) {
        MemoryDisk disk = new_disk();
        store_term(disk, 2);
        disk.overwrite(path, damaged * hard_state_second_copy + 100, std::vector(1, std::byte{0x55}));
        disk.fail_at(nth, MemoryDisk::Fault::power_cut, 0);
        {
          auto file = HardStateFile::open(disk, "data");
          if (file) {
            HardState next = file->value();
            next.term = 3;
            (void)file->store(next);
          }
        }
        MemoryDisk after = disk.after_power_cut(seed);
        const auto file = HardStateFile::open(after, "data");
        REQUIRE_MESSAGE(file, file.error().message);
        CHECK(file->value().term >= 2);
      }
    }
  }
}

TEST_CASE("T43: two bad copies, contradicting copies, a gap and a wrong size are refused as corrupt") {
  const auto refused = [](MemoryDisk& disk) {
    const auto file = HardStateFile::open(disk, "data");
    return !file && file.error().code == ErrorCode::corrupt;
  };
  MemoryDisk both_bad = new_disk();
  both_bad.overwrite(path, 200, std::vector(1, std::byte{1}));
  both_bad.overwrite(path, hard_state_second_copy + 200, std::vector(1, std::byte{1}));
  CHECK(refused(both_bad));

  MemoryDisk fork = new_disk();
  rewrite(fork, [](HardState& state) { state.term = 99; }, false);
  CHECK(refused(fork));

  MemoryDisk gap = new_disk();
  const auto old_copy = copy_at(gap, hard_state_second_copy);
  store_term(gap, 2);
  store_term(gap, 3);
  gap.overwrite(path, hard_state_second_copy, old_copy);
  CHECK(refused(gap));

  MemoryDisk longer = new_disk();
  longer.put(path, std::vector<std::byte>(hard_state_file_bytes + 1));
  CHECK(refused(longer));
}

TEST_CASE("a newer version and bytes this version keeps zero are refused as incompatible") {
  for (const auto& change :
       std::vector<std::function<void(HardState&)>>{[](HardState& state) { state.version = journal_version + 1; },
                                                    [](HardState& state) { state.flags = hard_state_known_flags + 1; },
                                                    [](HardState& state) { state.zero2[5] = 1; }}) {
    MemoryDisk disk = new_disk();
    rewrite(disk, change, true);
    const auto file = HardStateFile::open(disk, "data");
    REQUIRE_FALSE(file);
    CHECK(file.error().code == ErrorCode::incompatible);
  }
}

TEST_CASE("a failed store leaves the value to be decided on as it was") {
  MemoryDisk disk = new_disk();
  auto file = HardStateFile::open(disk, "data");
  REQUIRE(file);
  disk.fail_at(2, MemoryDisk::Fault::error, EIO);
  HardState next = file->value();
  next.term = 5;
  CHECK_FALSE(file->store(next));
  CHECK(file->value().term == 1);
}

}  // namespace
}  // namespace lockstep
