// SPDX-License-Identifier: Apache-2.0
#include "journal/hash_log.hpp"

#include <doctest/doctest.h>

#include <cstring>

#include "journal/testing/memory_disk.hpp"

namespace lockstep {
namespace {

const ClusterId cluster{1, 2};
const std::string path = "data/hashlog";

MemoryDisk new_disk() {
  MemoryDisk disk;
  REQUIRE(disk.make_directory("data"));
  return disk;
}

HashEntry entry_at(std::uint64_t index) {
  HashEntry entry;
  entry.index = index;
  entry.last_seq = index * 10;
  entry.time_ns = static_cast<std::int64_t>(index) * 1000;
  entry.state_root = {index, 1};
  entry.effects = {index, 2};
  entry.chain = {index, 3};
  return entry;
}

Result<HashLog> open_log(Disk& disk, std::uint64_t last_index = 1'000'000) {
  return HashLog::open(disk, "data", cluster, 0, last_index);
}

TEST_CASE("entries are found by batch, by the node and by tools, over reopening") {
  MemoryDisk disk = new_disk();
  for (std::uint64_t life = 0; life < 3; ++life) {
    auto log = open_log(disk);
    REQUIRE_MESSAGE(log, log.error().message);
    CHECK(log->last_index() == life * 40);
    for (std::uint64_t n = 1; n <= 20; ++n) REQUIRE(log->append(entry_at(life * 40 + 2 * n)));
    REQUIRE(log->find(life * 40 + 6).value());
    CHECK(log->find(life * 40 + 6).value()->last_seq == (life * 40 + 6) * 10);
    CHECK_FALSE(log->find(life * 40 + 7).value());
    REQUIRE(log->sync());
  }
  const auto content = read_hash_log(disk, "data");
  REQUIRE_MESSAGE(content, content.error().message);
  CHECK(content->entries.size() == 60);
  CHECK(content->torn_bytes == 0);
  CHECK(content->header.cluster_id == cluster);
  REQUIRE(content->find(120) != nullptr);
  CHECK(content->find(120)->effects == Digest{120, 2});
  CHECK(content->find(121) == nullptr);
}

TEST_CASE("what is derived again is compared, not appended") {
  MemoryDisk disk = new_disk();
  auto log = open_log(disk);
  for (std::uint64_t n = 1; n <= 5; ++n) REQUIRE(log->append(entry_at(n)));
  CHECK(log->append(entry_at(3)));
  const std::pair<Digest HashEntry::*, const char*> members[] = {
      {&HashEntry::state_root, "state"}, {&HashEntry::effects, "effects"}, {&HashEntry::chain, "history"}};
  for (const auto& [member, name] : members) {
    HashEntry other = entry_at(3);
    (other.*member).low ^= 1;
    const auto diverged = log->append(other);
    REQUIRE_FALSE(diverged);
    CHECK(diverged.error().code == ErrorCode::diverged);
    CHECK(diverged.error().message.find(std::string("the ") + name + " differs") != std::string::npos);
  }
  CHECK(read_hash_log(disk, "data")->entries.size() == 5);
}

TEST_CASE("a tail torn by a power cut, and entries behind the recovered history, are cut at open") {
  for (std::uint64_t seed = 1; seed < 100; ++seed) {
    MemoryDisk disk = new_disk();
    {
      auto log = open_log(disk);
      for (std::uint64_t n = 1; n <= 10; ++n) REQUIRE(log->append(entry_at(n)));
      REQUIRE(log->sync());
      for (std::uint64_t n = 11; n <= 40; ++n) REQUIRE(log->append(entry_at(n)));
    }
    MemoryDisk after = disk.after_power_cut(seed);
    auto log = open_log(after, 30);
    REQUIRE_MESSAGE(log, log.error().message);
    CHECK(log->last_index() >= 10);
    CHECK(log->last_index() <= 30);
    for (std::uint64_t n = 1; n <= 50; ++n) REQUIRE(log->append(entry_at(n)));
    CHECK(read_hash_log(after, "data")->entries.size() == 50);
  }
}

TEST_CASE("entries of a history that was cut do not come back behind those of the one that followed it") {
  for (std::uint64_t seed = 1; seed < 100; ++seed) {
    MemoryDisk disk = new_disk();
    {
      auto log = open_log(disk);
      for (std::uint64_t n = 1; n <= 40; ++n) REQUIRE(log->append(entry_at(n)));
      REQUIRE(log->sync());
    }
    const auto other_history = [](std::uint64_t n) {
      HashEntry entry = entry_at(n);
      entry.chain = {n, 77};
      return entry;
    };
    {
      auto log = open_log(disk, 20);
      REQUIRE_MESSAGE(log, log.error().message);
      for (std::uint64_t n = 21; n <= 30; ++n) REQUIRE(log->append(other_history(n)));
    }
    MemoryDisk after = disk.after_power_cut(seed);
    auto log = open_log(after, 30);
    REQUIRE_MESSAGE(log, log.error().message);
    for (std::uint64_t n = 21; n <= 30; ++n) {
      const auto appended = log->append(other_history(n));
      REQUIRE_MESSAGE(appended, "seed " << seed << ": " << appended.error().message);
    }
  }
}

TEST_CASE("a log whose making was cut short is made again") {
  for (std::size_t bytes : {std::size_t{0}, std::size_t{50}, sizeof(HashLogHeader)}) {
    MemoryDisk disk = new_disk();
    disk.put(path, std::vector<std::byte>(bytes));
    auto log = open_log(disk);
    REQUIRE_MESSAGE(log, log.error().message);
    CHECK(log->append(entry_at(1)));
  }
}

TEST_CASE("another cluster's log, a newer one and a damaged header are refused") {
  MemoryDisk disk = new_disk();
  REQUIRE(open_log(disk));
  const auto other = HashLog::open(disk, "data", ClusterId{9, 9}, 0, 10);
  REQUIRE_FALSE(other);
  CHECK(other.error().code == ErrorCode::incompatible);

  HashLogHeader header;
  std::memcpy(&header, disk.bytes(path).data(), sizeof header);
  header.version = journal_version + 1;
  header.checksum = xxh3_128(std::as_bytes(std::span(&header, 1)).subspan(sizeof(Digest)));
  disk.overwrite(path, 0, std::as_bytes(std::span(&header, 1)));
  CHECK(open_log(disk).error().code == ErrorCode::incompatible);
  CHECK(read_hash_log(disk, "data").error().code == ErrorCode::incompatible);

  disk.overwrite(path, 32, std::vector(16, std::byte{0xfe}));
  CHECK(open_log(disk).error().code == ErrorCode::corrupt);
}

TEST_CASE("a header with any one bit flipped is read as it was") {
  MemoryDisk whole = new_disk();
  {
    auto log = open_log(whole);
    for (std::uint64_t n = 1; n <= 5; ++n) REQUIRE(log->append(entry_at(n)));
  }
  for (std::uint64_t bit = 0; bit < sizeof(HashLogHeader) * 8; ++bit) {
    MemoryDisk disk = whole.copy();
    disk.flip_bit(path, bit);
    const auto content = read_hash_log(disk, "data");
    REQUIRE_MESSAGE(content, "bit " << bit);
    CHECK(content->entries.size() == 5);
    CHECK(std::memcmp(&content->header, whole.bytes(path).data(), sizeof content->header) == 0);
    auto log = open_log(disk);
    REQUIRE_MESSAGE(log, log.error().message);
    CHECK(log->last_index() == 5);
  }
}

TEST_CASE("only a file that holds nothing is made anew: with an entry behind it, a header of zeros is damage") {
  for (const std::size_t bytes : {std::size_t{0}, std::size_t{100}, sizeof(HashLogHeader), std::size_t{4096}}) {
    MemoryDisk disk = new_disk();
    disk.put(path, std::vector<std::byte>(bytes));
    CHECK(read_hash_log(disk, "data").error().code == ErrorCode::incomplete);
    auto log = open_log(disk);
    REQUIRE_MESSAGE(log, log.error().message);
    CHECK(log->remade());
    CHECK(read_hash_log(disk, "data")->torn_bytes == 0);
  }
  MemoryDisk disk = new_disk();
  {
    auto log = open_log(disk);
    CHECK_FALSE(log->remade());
    REQUIRE(log->append(entry_at(7)));
  }
  disk.overwrite(path, 0, std::vector<std::byte>(sizeof(HashLogHeader)));
  CHECK(read_hash_log(disk, "data").error().code == ErrorCode::corrupt);
  const auto refused = open_log(disk);
  REQUIRE_FALSE(refused);
  CHECK(refused.error().code == ErrorCode::corrupt);
  CHECK(refused.error().message.find("batch 7") != std::string::npos);
}

TEST_CASE("the last durable root is found past damage, and neither in another's log nor among those without the flag") {
  MemoryDisk disk = new_disk();
  CHECK_FALSE(last_durable_root(disk, "data", cluster, 0).value());
  {
    auto log = open_log(disk);
    for (std::uint64_t n = 1; n <= 2000; ++n) {
      HashEntry entry = entry_at(n);
      entry.flags = n % 2 == 0 && n <= 100 ? hash_entry_durable : 0;
      REQUIRE(log->append(entry));
    }
  }
  const auto last = [&] { return last_durable_root(disk, "data", cluster, 0).value(); };
  REQUIRE(last());
  CHECK(last()->index == 100);
  CHECK_FALSE(last_durable_root(disk, "data", ClusterId{9, 9}, 0).value());
  CHECK_FALSE(last_durable_root(disk, "data", cluster, 1).value());
  disk.overwrite(path, sizeof(HashLogHeader) + 99 * sizeof(HashEntry) + 50, std::vector(1, std::byte{0xff}));
  CHECK(last()->index == 98);
  disk.overwrite(path, 0, std::vector(sizeof(HashLogHeader), std::byte{0x5a}));
  CHECK(last()->index == 98);
  CHECK(open_log(disk).error().code == ErrorCode::corrupt);
  CHECK(check_hash_log(disk, "data", cluster, 0).error().code == ErrorCode::corrupt);
}

TEST_CASE("whether a log would be opened can be asked without opening it") {
  MemoryDisk disk = new_disk();
  CHECK(check_hash_log(disk, "data", cluster, 0));
  CHECK(open_log(disk));
  CHECK(check_hash_log(disk, "data", cluster, 0));
  CHECK(check_hash_log(disk, "data", cluster, 1).error().code == ErrorCode::incompatible);
  disk.flip_bit(path, 77);
  CHECK(check_hash_log(disk, "data", cluster, 0));  // restored, as open() does
}

TEST_CASE("what open() cuts behind the history is told") {
  MemoryDisk disk = new_disk();
  {
    auto log = open_log(disk);
    for (std::uint64_t n = 1; n <= 10; ++n) REQUIRE(log->append(entry_at(n)));
  }
  CHECK(open_log(disk, 10)->cut_index() == 0);
  CHECK(open_log(disk, 6)->cut_index() == 10);
  CHECK(read_hash_log(disk, "data")->entries.size() == 6);
}

TEST_CASE("a damaged entry is an error, not an answer") {
  MemoryDisk disk = new_disk();
  auto log = open_log(disk);
  for (std::uint64_t n = 1; n <= 5; ++n) REQUIRE(log->append(entry_at(n)));
  disk.overwrite(path, sizeof(HashLogHeader) + 2 * sizeof(HashEntry) + 50, std::vector(1, std::byte{0xff}));
  CHECK(log->find(3).error().code == ErrorCode::corrupt);
  const auto content = read_hash_log(disk, "data");
  CHECK(content->entries.size() == 2);
  CHECK(content->torn_bytes == 3 * sizeof(HashEntry));
}

}  // namespace
}  // namespace lockstep
