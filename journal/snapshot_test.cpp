// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include "journal/snapshots.hpp"
#include "journal/testing/example_snapshot.hpp"
#include "journal/testing/golden.hpp"
#include "journal/testing/journal_run.hpp"
#include "journal/testing/memory_disk.hpp"

namespace lockstep {
namespace {

const std::string directory = "data";
const ClusterId cluster{0x1111111111111111, 0x2222222222222222};
const HistoryPosition somewhere{42, 1000, 77, {5, 6}};
const std::vector<std::vector<std::uint64_t>> small_state{{600, 4096, 9000}, {528}, {512, 16}};

std::string path_of(std::uint64_t index) {
  return directory + "/" + snapshot_name(index);
}

MemoryDisk empty_directory() {
  MemoryDisk disk;
  REQUIRE(disk.make_directory(directory));
  return disk;
}

std::vector<std::byte> bytes_of(const MemoryDisk& disk, const std::string& path) {
  const auto bytes = disk.bytes(path);
  return {bytes.begin(), bytes.end()};
}

std::vector<std::byte> small_snapshot() {
  MemoryDisk disk = empty_directory();
  REQUIRE(ExampleSnapshot(somewhere, cluster, small_state).write(disk, directory));
  return bytes_of(disk, path_of(42));
}

ErrorCode refusal_of(const std::vector<std::byte>& content) {
  MemoryDisk disk = empty_directory();
  disk.put("x", content);
  const auto verified = verify_snapshot(disk, "x");
  REQUIRE(!verified);
  return verified.error().code;
}

/// Makes header and footer of a changed snapshot agree again, as a writer with a bug or an attacker would.
void fix_checksums(std::vector<std::byte>& content, const SnapshotHeader& changed) {
  SnapshotHeader header = changed;
  header.checksum = page_checksum(header);
  std::memcpy(content.data(), &header, sizeof header);
  SnapshotFooter footer;
  std::byte* const end = content.data() + content.size() - sizeof footer;
  std::memcpy(&footer, end, sizeof footer);
  footer.header_checksum = header.checksum;
  footer.checksum = page_checksum(footer);
  std::memcpy(end, &footer, sizeof footer);
}

SnapshotHeader header_of(const std::vector<std::byte>& content) {
  SnapshotHeader header;
  std::memcpy(&header, content.data(), sizeof header);
  return header;
}

TEST_CASE("a snapshot is written byte for byte as version 1 is, and read back") {
  const ExampleSnapshot expected(somewhere, cluster, {{528, 20}, {512}});
  MemoryDisk written = empty_directory();
  REQUIRE(expected.write(written, directory));
  const std::vector<std::byte> content = bytes_of(written, path_of(42));
  CHECK(dump(content) == golden("snapshot.snp.hex", content));

  MemoryDisk disk = empty_directory();
  disk.put(path_of(42), undump(golden("snapshot.snp.hex", content)));
  REQUIRE(verify_snapshot(disk, path_of(42)));
  auto reader = SnapshotReader::open(disk, path_of(42));
  REQUIRE(reader);
  CHECK(position_of(reader->header()) == somewhere);
  CHECK(reader->header().root == expected.header.root);
  CHECK(reader->genesis().size() == 5);
  std::size_t arena = 0;
  for (const auto& shard : expected.shards) {
    for (const auto& [key, bytes, pages] : shard) {
      CHECK(reader->arenas()[arena].actor_key == key);
      std::vector<std::byte> image(reader->arenas()[arena++].image_bytes);
      REQUIRE(reader->read_image(image));
      CHECK(std::equal(image.begin(), image.end(), pages.begin()));
    }
  }
  CHECK(arena == reader->arenas().size());
  CHECK(reader->next(1)->empty());
}

TEST_CASE("images beyond one write, and arenas beyond one node of a tree, are written and verified") {
  std::vector<std::vector<std::uint64_t>> lengths{{512, (3U << 20U) + 100}, {}};
  for (std::uint64_t i = 0; i < 70; ++i) lengths[1].push_back(512 + i * 16);
  MemoryDisk disk = empty_directory();
  REQUIRE(ExampleSnapshot(somewhere, cluster, lengths).write(disk, directory));
  CHECK(verify_snapshot(disk, path_of(42)));
}

TEST_CASE("T47: a flip of any byte of a snapshot is rejected") {
  const std::vector<std::byte> content = small_snapshot();
  MemoryDisk disk = empty_directory();
  disk.put("x", content);
  REQUIRE(verify_snapshot(disk, "x"));
  for (std::size_t at = 0; at < content.size(); ++at) {
    const std::byte flipped = content[at] ^ static_cast<std::byte>(1U << (at % 8));
    disk.overwrite("x", at, {&flipped, 1});
    REQUIRE_MESSAGE(!verify_snapshot(disk, "x"), "at ", at);
    disk.overwrite("x", at, {&content[at], 1});
  }
  CHECK(verify_snapshot(disk, "x"));
}

TEST_CASE("T46: a snapshot of any other length is rejected, an empty one and one without a footer too") {
  const std::vector<std::byte> content = small_snapshot();
  for (std::size_t length = 0; length < content.size(); length += 512)
    CHECK(refusal_of({content.begin(), content.begin() + static_cast<std::ptrdiff_t>(length)}) == ErrorCode::corrupt);
  std::vector<std::byte> longer = content;
  longer.resize(content.size() + 4096);
  CHECK(refusal_of(longer) == ErrorCode::corrupt);
  std::vector<std::byte> without_footer = content;
  std::fill(without_footer.end() - 4096, without_footer.end(), std::byte{0});
  CHECK(refusal_of(without_footer) == ErrorCode::corrupt);
}

TEST_CASE("counts and lengths beyond the file are rejected although every checksum fits") {
  const std::vector<std::byte> sound = small_snapshot();
  const auto refused = [&](auto change) {
    std::vector<std::byte> content = sound;
    SnapshotHeader header = header_of(content);
    change(header);
    fix_checksums(content, header);
    return refusal_of(content);
  };
  constexpr std::uint64_t huge = UINT64_MAX - 4095;
  CHECK(refused([](SnapshotHeader& h) { h.arena_count = huge; }) == ErrorCode::corrupt);
  CHECK(refused([](SnapshotHeader& h) { h.arena_count += 1; }) == ErrorCode::corrupt);
  CHECK(refused([](SnapshotHeader& h) { h.shard_count = UINT32_MAX; }) == ErrorCode::corrupt);
  CHECK(refused([](SnapshotHeader& h) { h.shard_count = 0; }) == ErrorCode::corrupt);
  CHECK(refused([](SnapshotHeader& h) { h.table_bytes = huge; }) == ErrorCode::corrupt);
  CHECK(refused([](SnapshotHeader& h) { h.image_bytes = huge; }) == ErrorCode::corrupt);
  CHECK(refused([](SnapshotHeader& h) { h.image_bytes += 4096; }) == ErrorCode::corrupt);
  CHECK(refused([](SnapshotHeader& h) { h.total_bytes = huge; }) == ErrorCode::corrupt);
  CHECK(refused([](SnapshotHeader& h) { h.genesis_bytes = UINT32_MAX; }) == ErrorCode::corrupt);
  CHECK(refused([](SnapshotHeader& h) { h.root.low += 1; }) == ErrorCode::corrupt);
  CHECK(refused([](SnapshotHeader& h) { h.effects.low += 1; }) == ErrorCode::corrupt);
  CHECK(refused([](SnapshotHeader& h) { h.version = 2; }) == ErrorCode::incompatible);
  CHECK(refused([](SnapshotHeader& h) { h.flags = 1; }) == ErrorCode::incompatible);
  CHECK(refused([](SnapshotHeader& h) { h.zero[7] = 1; }) == ErrorCode::incompatible);
}

TEST_CASE("what was written is held against the checkpoint's root before it gets a name") {
  MemoryDisk disk = empty_directory();
  ExampleSnapshot snapshot(somewhere, cluster, small_state);
  snapshot.header.root.high ^= 1;
  const auto written = snapshot.write(disk, directory);
  REQUIRE(!written);
  CHECK(written.error().code == ErrorCode::diverged);
  CHECK(disk.list(directory)->empty());
}

TEST_CASE("T46: a crash or an error at any operation of a snapshot leaves a whole one or none") {
  const ExampleSnapshot snapshot(somewhere, cluster, small_state);
  MemoryDisk whole = empty_directory();
  REQUIRE(snapshot.write(whole, directory));
  const auto expected = bytes_of(whole, path_of(42));
  std::uint64_t states = 0;
  std::uint64_t kept = 0;
  for (std::uint64_t at = 1; at <= whole.operations(); ++at) {
    for (std::uint64_t seed = 1; seed <= 16; ++seed, ++states) {
      MemoryDisk disk(seed);
      REQUIRE(disk.make_directory(directory));
      disk.fail_at(at, MemoryDisk::Fault::power_cut, EIO);
      const bool acknowledged = snapshot.write(disk, directory).has_value();
      MemoryDisk after = disk.after_power_cut(seed);
      REQUIRE(remove_half_made_snapshots(after, directory));
      const auto found = list_snapshots(after, directory);
      REQUIRE(found);
      REQUIRE(found->size() == after.list(directory)->size());
      if (acknowledged) REQUIRE(found->size() == 1);
      if (found->empty()) continue;
      ++kept;
      REQUIRE(verify_snapshot(after, path_of(42)));
      REQUIRE(bytes_of(after, path_of(42)) == expected);
    }
    MemoryDisk disk = empty_directory();
    disk.fail_at(at, MemoryDisk::Fault::error, ENOSPC);
    REQUIRE_MESSAGE((!snapshot.write(disk, directory) || at == 1), "operation ", at);
  }
  CHECK(states >= 128);
  CHECK(kept > 0);
}

/// A journal with snapshots of some of its batches beside it.
struct Directory {
  explicit Directory(int batches) {
    auto run = JournalRun::start(disk, directory, history, 7);
    REQUIRE(run);
    for (int i = 0; i < batches; ++i) REQUIRE((*run)->append_random());
    REQUIRE((*run)->writer().close());
    cluster_id = (*run)->writer().hard_state().cluster_id;
  }
  void snapshot(std::uint64_t index, std::uint64_t fork = 0) {
    HistoryPosition at = position_after(history[index - 1]);
    at.chain.low ^= fork;
    REQUIRE(ExampleSnapshot(at, cluster_id, small_state).write(disk, directory));
  }
  void damage(std::uint64_t index) {
    const std::byte other{0xFF};
    disk.overwrite(path_of(index), 5000, {&other, 1});
  }
  [[nodiscard]] Result<SnapshotChoice> choose() { return choose_snapshot(disk, directory); }

  MemoryDisk disk;
  ClusterId cluster_id;
  std::vector<BatchHeader> history;
};

TEST_CASE("a start goes on from the newest snapshot") {
  Directory data(20);
  CHECK(!data.choose()->snapshot);
  data.snapshot(5);
  CHECK(data.choose()->snapshot->header().index == 5);
  data.snapshot(20);
  const auto chosen = data.choose();
  REQUIRE(chosen);
  CHECK(chosen->snapshot->header().index == 20);
  CHECK(chosen->passed_over.empty());
}

TEST_CASE("T48: damaged snapshots are passed over for older ones, and in the end for the first batch") {
  Directory data(20);
  data.snapshot(5);
  data.snapshot(12);
  data.disk.put(path_of(19), {});
  data.damage(12);
  const auto chosen = data.choose();
  REQUIRE(chosen);
  CHECK(chosen->snapshot->header().index == 5);
  CHECK(chosen->passed_over.size() == 2);
  data.damage(5);
  const auto none = data.choose();
  REQUIRE(none);
  CHECK(!none->snapshot);
  CHECK(none->passed_over.size() == 3);
}

TEST_CASE("T49: a snapshot of another cluster, of another history, or ahead of the journal is refused") {
  Directory foreign(20);
  foreign.cluster_id.low ^= 1;
  foreign.snapshot(5);
  CHECK(foreign.choose().error().code == ErrorCode::incompatible);

  Directory forked(20);
  forked.snapshot(5);
  forked.snapshot(12, 1);
  CHECK(forked.choose().error().code == ErrorCode::incompatible);
  Directory forked_at_end(20);
  forked_at_end.snapshot(20, 1);
  CHECK(forked_at_end.choose().error().code == ErrorCode::incompatible);

  Directory ahead(20);
  ahead.history.push_back(ahead.history.back());
  ahead.history.back().index = 21;
  ahead.snapshot(21);
  CHECK(ahead.choose().error().code == ErrorCode::corrupt);
}

}  // namespace
}  // namespace lockstep
