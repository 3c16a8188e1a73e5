// SPDX-License-Identifier: Apache-2.0
#include "journal/recovery.hpp"

#include <doctest/doctest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <functional>

#include "journal/directory.hpp"
#include "journal/hash_log.hpp"
#include "journal/inspect.hpp"
#include "journal/posix_disk.hpp"
#include "journal/repair.hpp"
#include "journal/testing/journal_run.hpp"
#include "journal/testing/memory_disk.hpp"
#include "journal/testing/scratch_directory.hpp"

namespace lockstep {
namespace {

const std::string directory = "data";

std::string segment_path(std::uint64_t id) {
  return directory + "/" + segment_name(id);
}

/// A journal whose process was killed after `batches` batches were durable.
struct Journal {
  explicit Journal(int batches, std::uint64_t seed = 1, bool marked = true) {
    auto run = JournalRun::start(disk, directory, history, seed);
    REQUIRE_MESSAGE(run, run.error().message);
    for (int i = 0; i < batches; ++i) REQUIRE((*run)->append_random());
    REQUIRE((*run)->settle());
    if (marked) (*run)->advance(10'000'000);
    for (int i = 0; i < 10; ++i) (*run)->poll();
  }

  [[nodiscard]] Result<Recovered> start(RecoveryOptions options = {}) {
    options.directory = directory;
    return recover(disk, options, &findings);
  }
  /// The code a start is refused with; nothing when it is not refused.
  [[nodiscard]] std::optional<ErrorCode> refusal(const RecoveryOptions& options = {}) {
    const auto started = start(options);
    if (started) return std::nullopt;
    return started.error().code;
  }
  /// Files by name, to see whether any was changed.
  [[nodiscard]] std::map<std::string, std::vector<std::byte>> files() {
    std::map<std::string, std::vector<std::byte>> result;
    const auto names = disk.list(directory);
    for (const std::string& name : *names) {
      const auto bytes = disk.bytes(directory + "/" + name);
      result[name] = {bytes.begin(), bytes.end()};
    }
    return result;
  }
  /// Offsets of the blocks of a segment.
  [[nodiscard]] std::vector<std::uint64_t> blocks(std::uint64_t id) {
    std::vector<std::uint64_t> offsets;
    const auto bytes = disk.bytes(segment_path(id));
    for (std::uint64_t at = sizeof(SegmentHeader); at < bytes.size();) {
      BlockHeader header;
      std::memcpy(&header, bytes.data() + at, sizeof header);
      if (header.magic != block_magic) break;
      offsets.push_back(at);
      at += header.total_bytes;
    }
    return offsets;
  }
  void zero(std::uint64_t id, std::uint64_t offset, std::size_t bytes) {
    disk.overwrite(segment_path(id), offset, std::vector<std::byte>(bytes));
  }
  /// Changes a block's header and sets its checksum right again, as a newer or a faulty program might have.
  void forge(std::uint64_t id, std::uint64_t offset, const std::function<void(BlockHeader&)>& change) {
    const auto bytes = disk.bytes(segment_path(id)).subspan(offset);
    BlockHeader header;
    std::memcpy(&header, bytes.data(), sizeof header);
    std::vector<std::byte> block(bytes.begin(), bytes.begin() + header.header_bytes);
    change(header);
    std::memcpy(block.data(), &header, sizeof header);
    header.checksum = xxh3_128(std::span<const std::byte>(block).subspan(sizeof(Digest)));
    std::memcpy(block.data(), &header.checksum, sizeof header.checksum);
    disk.overwrite(segment_path(id), offset, block);
  }
  void forge_segment(std::uint64_t id, const std::function<void(SegmentHeader&)>& change) {
    SegmentHeader header;
    std::memcpy(&header, disk.bytes(segment_path(id)).data(), sizeof header);
    change(header);
    finish_segment_header(header);
    disk.overwrite(segment_path(id), 0, std::as_bytes(std::span(&header, 1)));
  }

  /// A root of a batch, as a node leaves it: with HashEntry's flags.
  void record_root(std::uint64_t index, std::uint32_t flags) {
    const auto state = look_at_hard_state(disk, directory);
    REQUIRE(state);
    auto log = HashLog::open(disk, directory, state->cluster_id, state->replica_id, UINT64_MAX);
    REQUIRE_MESSAGE(log, log.error().message);
    HashEntry entry;
    entry.flags = flags;
    entry.index = index;
    entry.chain = history[index - 1].chain;
    REQUIRE(log->append(entry));
  }
  /// Nothing is left of the last segment from its block `from` on, as if none of it had been written.
  void lose_from(std::size_t from) {
    const std::uint64_t offset = blocks(1)[from];
    zero(1, offset, disk.bytes(segment_path(1)).size() - offset);
  }

  MemoryDisk disk;
  std::vector<BatchHeader> history;
  std::vector<Finding> findings;
};

TEST_CASE("a killed process' journal is taken over without an operator, again and again") {
  Journal journal(40);
  for (std::uint64_t life = 2; life < 6; ++life) {
    const auto recovered = journal.start();
    REQUIRE_MESSAGE(recovered, recovered.error().message);
    CHECK(recovered->position.index == 40);
    CHECK(recovered->hard_state.value().incarnation == life);
    CHECK_FALSE(recovered->created);
    CHECK(journal.findings.empty());
  }
  CHECK(read_and_compare(journal.disk, directory, journal.history).value() == 40);
}

TEST_CASE(
    "T11, T18, T19: any flipped bit in acknowledged data refuses the start, names the place and changes no file") {
  std::mt19937_64 random(5);
  for (int sample = 0; sample < 600; ++sample) {
    Journal journal(12);
    const std::uint64_t id = 1 + random() % 2;
    const auto blocks = journal.blocks(id);
    // The MARK at the end is the one block that nothing behind it vouches for.
    const std::uint64_t end = id == 1 ? blocks.back() + disk_block_bytes : blocks.back();
    const std::uint64_t at = random() % end;
    const std::byte flipped = journal.disk.bytes(segment_path(id))[at] ^ static_cast<std::byte>(1 << random() % 8);
    journal.disk.overwrite(segment_path(id), at, std::span(&flipped, 1));
    const auto before = journal.files();
    const auto refused = journal.refusal();
    REQUIRE_MESSAGE(refused, "offset " << at << " of segment " << id);
    CHECK(*refused == ErrorCode::corrupt);
    REQUIRE(journal.findings.size() > 0);
    CHECK(journal.findings[0].file == segment_path(id));
    CHECK(journal.files() == before);
    CHECK_FALSE(inspect_journal(journal.disk, directory, InspectDepth::blocks)->sound());
    CHECK(journal.files() == before);
  }
}

TEST_CASE("a lost sector of the last batch looks torn without a MARK, and is known as lost with one") {
  Journal unmarked(5, 1, false);
  unmarked.zero(1, unmarked.blocks(1).back(), disk_block_bytes);
  CHECK_FALSE(unmarked.refusal());
  CHECK(unmarked.history.size() == 5);

  Journal marked(5);
  const auto blocks = marked.blocks(1);
  marked.zero(1, blocks[blocks.size() - 2], disk_block_bytes);
  CHECK(marked.refusal() == ErrorCode::corrupt);
}

TEST_CASE("T14: garbage behind the last batch is for an operator to decide, who gets a copy of what is cut") {
  Journal journal(5);
  const std::uint64_t end = journal.blocks(1).back() + disk_block_bytes;
  const std::vector<std::byte> garbage(3000, std::byte{0x77});
  journal.disk.overwrite(segment_path(1), end, garbage);
  journal.disk.overwrite(segment_path(1), end + 3000, std::vector(2000, std::byte{0x78}));
  const auto before = journal.files();
  CHECK(journal.refusal() == ErrorCode::ambiguous);
  REQUIRE(journal.findings.size() == 1);
  CHECK(journal.findings[0].tail == TailClass::ambiguous);
  CHECK(journal.findings[0].index == 6);
  CHECK(journal.files() == before);

  RecoveryOptions accepting;
  accepting.accept_tail = true;
  CHECK_FALSE(journal.refusal(accepting));
  const auto after = journal.files();
  CHECK(after.at(segment_name(1) + ".bad") == before.at(segment_name(1)));
  CHECK_FALSE(journal.refusal());
  CHECK(read_and_compare(journal.disk, directory, journal.history).value() == 5);
}

TEST_CASE("a shortened last segment is never taken for a crash") {
  for (std::size_t cut = 0; cut < 40; ++cut) {
    Journal journal(6, 3);
    const std::uint64_t end = journal.blocks(1).back() + disk_block_bytes;
    const auto bytes = journal.disk.bytes(segment_path(1));
    const std::size_t size = bytes.size() * cut / 40 + cut;
    journal.disk.put(segment_path(1), {bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(size)});
    const auto refused = journal.refusal();
    const bool all_there = size >= end;
    CHECK_MESSAGE((refused == ErrorCode::corrupt || refused == ErrorCode::ambiguous || all_there), "size " << size);
  }
}

TEST_CASE("T24, T25: a missing segment is missed, be it the first, one in the middle, or the newest used") {
  const std::uint64_t newest = [] {
    Journal journal(40);
    return journal.disk.list(directory)->size() - 1 - small_journal.spare_segments;
  }();
  REQUIRE(newest > 3);
  for (const std::uint64_t id : {std::uint64_t{1}, std::uint64_t{2}, newest}) {
    Journal journal(40);
    REQUIRE(journal.disk.remove(segment_path(id)));
    CHECK(journal.refusal() == ErrorCode::corrupt);
    REQUIRE(journal.findings.size() == 1);
    CHECK(journal.findings[0].file == segment_path(id));
    CHECK(journal.findings[0].evidence.find("missing") != std::string::npos);
  }
}

TEST_CASE("T12: a journal cut at an exact batch boundary is missed through the hard state or a later segment") {
  Journal journal(40);
  const auto blocks = journal.blocks(1);
  const std::uint64_t at = blocks[blocks.size() / 2];
  journal.zero(1, at, journal.disk.bytes(segment_path(1)).size() - at);
  CHECK(journal.refusal() == ErrorCode::corrupt);
  CHECK(journal.findings[0].evidence.find("a later segment has blocks") != std::string::npos);
}

TEST_CASE("T17: a swapped, repeated or misplaced block is refused") {
  for (std::size_t from = 0; from < 6; ++from) {
    for (std::size_t to = 0; to < 6; ++to) {
      if (from == to) continue;
      Journal journal(8);
      const auto blocks = journal.blocks(1);
      const auto source = journal.disk.bytes(segment_path(1)).subspan(blocks[from], disk_block_bytes);
      journal.disk.overwrite(segment_path(1), blocks[to], std::vector(source.begin(), source.end()));
      CHECK(journal.refusal() == ErrorCode::corrupt);
    }
  }
}

TEST_CASE("T21: a gap in indexes, sequence numbers or time between sound blocks is refused") {
  for (const auto& change : std::vector<std::function<void(BlockHeader&)>>{
           [](BlockHeader& header) { ++header.index; }, [](BlockHeader& header) { ++header.first_seq; },
           [](BlockHeader& header) { header.first_time_ns = -5; }, [](BlockHeader& header) { header.chain.low ^= 1; },
           [](BlockHeader& header) { header.prev_block.low ^= 1; }, [](BlockHeader& header) { ++header.block_no; }}) {
    Journal journal(8);
    journal.forge(1, journal.blocks(1)[2], change);
    CHECK(journal.refusal() == ErrorCode::corrupt);
  }
}

TEST_CASE("T52: lengths that cannot be are refused before they are used, even with a checksum that fits") {
  for (const std::uint32_t length : {0U, 1U, 4095U, 65535U, 1U << 20, 0x7fffffffU, 0xffffffffU}) {
    for (const auto member : {&BlockHeader::payload_bytes, &BlockHeader::total_bytes, &BlockHeader::record_count}) {
      Journal journal(8);
      journal.forge(1, journal.blocks(1)[2],
                    [&](BlockHeader& header) { header.*member = header.*member == length ? 2 : length; });
      CHECK(journal.refusal() == ErrorCode::corrupt);
    }
    Journal journal(8);
    journal.disk.overwrite(segment_path(1), journal.blocks(1)[2] + offsetof(BlockHeader, header_bytes),
                           std::as_bytes(std::span(&length, 1)));
    CHECK(journal.refusal() == ErrorCode::corrupt);
  }
}

TEST_CASE("T20: a sector that cannot be read is damage, not an end and not a crash") {
  Journal journal(40);
  journal.disk.make_unreadable(segment_path(1), journal.blocks(1)[1] + 100);
  CHECK(journal.refusal() == ErrorCode::corrupt);
  CHECK(journal.findings[0].block == 2);
}

TEST_CASE("T56, T57: a newer version, an unknown block type or flag is refused as newer, not as damage") {
  const auto forged = [](const std::function<void(BlockHeader&)>& change) {
    Journal journal(8);
    journal.forge(1, journal.blocks(1).back(), change);
    return journal.refusal();
  };
  CHECK(forged([](BlockHeader& header) { ++header.version; }) == ErrorCode::incompatible);
  CHECK(forged([](BlockHeader& header) { header.hash_algorithm = 2; }) == ErrorCode::incompatible);
  CHECK(forged([](BlockHeader& header) { header.flags |= 2; }) == ErrorCode::incompatible);
  CHECK(forged([](BlockHeader& header) { header.zero[3] = 1; }) == ErrorCode::incompatible);
  CHECK(forged([](BlockHeader& header) { header.type = BlockType{6}; }) == ErrorCode::incompatible);
  CHECK(forged([](BlockHeader& header) { header.type = BlockType::truncate; }) == ErrorCode::incompatible);
  CHECK(forged([](BlockHeader& header) { header.type = BlockType{6 | ignorable_block_bit}; }) == std::nullopt);

  const auto forged_segment = [](const std::function<void(SegmentHeader&)>& change) {
    Journal journal(8);
    journal.forge_segment(1, change);
    return journal.refusal();
  };
  CHECK(forged_segment([](SegmentHeader& header) { ++header.version; }) == ErrorCode::incompatible);
  CHECK(forged_segment([](SegmentHeader& header) { header.flags = 1; }) == ErrorCode::incompatible);
  CHECK(forged_segment([](SegmentHeader& header) { header.endian = 0x04030201; }) == ErrorCode::incompatible);
  CHECK(forged_segment([](SegmentHeader& header) { header.cluster_id.low ^= 1; }) == ErrorCode::incompatible);
  CHECK(forged_segment([](SegmentHeader& header) { ++header.replica_id; }) == ErrorCode::incompatible);
  CHECK(forged_segment([](SegmentHeader& header) { header.segment_id = 2; }) == ErrorCode::corrupt);
}

TEST_CASE("T57: a batch behind an ignorable block of an unknown type is read") {
  Journal journal(3);
  journal.forge(1, journal.blocks(1).back(),
                [](BlockHeader& header) { header.type = BlockType{6 | ignorable_block_bit}; });
  auto run = JournalRun::start(journal.disk, directory, journal.history, 2);
  REQUIRE_MESSAGE(run, run.error().message);
  REQUIRE((*run)->append_random());
  REQUIRE((*run)->settle());
  CHECK(read_and_compare(journal.disk, directory, journal.history).value() == 4);
}

TEST_CASE("another cluster's or replica's directory is refused, and so is one that holds no journal when none is due") {
  MemoryDisk disk;
  REQUIRE(disk.make_directory(directory));
  RecoveryOptions options;
  options.directory = directory;
  options.create = false;
  CHECK(recover(disk, options).error().code == ErrorCode::usage);
  options.create = true;
  options.cluster_id = ClusterId{1, 2};
  options.replica_id = 3;
  REQUIRE(recover(disk, options));
  CHECK(recover(disk, options));
  options.cluster_id = ClusterId{1, 3};
  CHECK(recover(disk, options).error().code == ErrorCode::incompatible);
  options.cluster_id.reset();
  options.replica_id = 4;
  CHECK(recover(disk, options).error().code == ErrorCode::incompatible);
}

TEST_CASE("segments without their hard state are not made into a new journal") {
  Journal journal(3);
  REQUIRE(journal.disk.remove(directory + "/hardstate"));
  CHECK(journal.refusal() == ErrorCode::corrupt);
}

TEST_CASE("T27: files of other names are left alone, and half-made ones are cleared away") {
  Journal journal(3);
  const std::vector<std::string> foreign{"notes.txt",           "seg-0000000000000001.jnl~",
                                         "seg-1.jnl",           "SEG-0000000000000009.JNL",
                                         std::string(300, 'x'), "seg-00000000000000AA.jnl"};
  for (const std::string& name : foreign) journal.disk.put(directory + "/" + name, {});
  journal.disk.put(directory + "/seg-0000000000000009.jnl.tmp", {});
  CHECK_FALSE(journal.refusal());
  const auto files = journal.files();
  for (const std::string& name : foreign) CHECK(files.contains(name));
  CHECK_FALSE(files.contains("seg-0000000000000009.jnl.tmp"));
}

TEST_CASE("T37: a full disk does not keep a node from starting, only from taking input, until there is space") {
  Journal journal(30);
  journal.disk.set_free_bytes(0);
  auto run = JournalRun::start(journal.disk, directory, journal.history, 2);
  REQUIRE_MESSAGE(run, run.error().message);
  journal.disk.set_free_bytes(0);  // what the start freed is taken by others
  CHECK(read_and_compare(journal.disk, directory, journal.history).value() == 30);
  CHECK_FALSE((*run)->append_random());
  CHECK_FALSE((*run)->writer().failure());
  REQUIRE((*run)->writer().out_of_space());
  journal.disk.set_free_bytes(UINT64_MAX);
  (*run)->advance(small_journal.space_retry_ns);
  REQUIRE((*run)->append_random());
  REQUIRE((*run)->settle());
  CHECK(read_and_compare(journal.disk, directory, journal.history).value() == 31);
}

TEST_CASE("T63: a second process on the directory is refused, and so is a second start within one") {
  const ScratchDirectory scratch;
  PosixDisk disk;
  RecoveryOptions options;
  options.directory = scratch.file("data");
  const auto held = recover(disk, options);
  REQUIRE_MESSAGE(held, held.error().message);
  CHECK(recover(disk, options).error().code == ErrorCode::busy);
  const pid_t child = ::fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    PosixDisk other;
    const auto second = recover(other, options);
    ::_exit(!second && second.error().code == ErrorCode::busy ? 0 : 1);
  }
  int status = 0;
  REQUIRE(::waitpid(child, &status, 0) == child);
  CHECK(WIFEXITED(status));
  CHECK(WEXITSTATUS(status) == 0);
}

TEST_CASE(
    "a history that ends before a root recorded as durable has lost what was acknowledged, however clean it looks") {
  Journal journal(6);
  journal.record_root(2, hash_entry_durable);
  journal.record_root(6, hash_entry_durable);
  REQUIRE(inspect_journal(journal.disk, directory, InspectDepth::records)->sound());
  journal.lose_from(3);
  const auto before = journal.files();
  for (const bool accept : {false, true}) {
    const auto refused = journal.start({.directory = directory, .accept_tail = accept});
    REQUIRE_FALSE(refused);
    CHECK(refused.error().code == ErrorCode::corrupt);
    CHECK(refused.error().message.find("the hash log knows batch 6 as durable") != std::string::npos);
    CHECK(refused.error().message.find("moves that file away") != std::string::npos);
    CHECK(journal.files() == before);
  }
  const auto info = inspect_journal(journal.disk, directory, InspectDepth::records);
  REQUIRE(info);
  CHECK_FALSE(info->sound());
  const auto repaired = repair_journal(journal.disk, directory, true);
  REQUIRE_MESSAGE(repaired, repaired.error().message);
  REQUIRE(repaired->left.size() == 1);
  CHECK(repaired->left[0].last_index == 6);

  const auto member = journal.start({.directory = directory, .cluster = true});
  REQUIRE_MESSAGE(member, member.error().message);
  CHECK(member->hard_state.value().recovery_state == RecoveryState::repairing);
  CHECK(member->hard_state.value().limbo_index >= 6);
}

TEST_CASE("a sealed history that ends before a root recorded as durable is refused, until the record is moved away") {
  Journal journal(6);
  journal.record_root(2, 0);
  journal.lose_from(3);
  REQUIRE(journal.start());
  journal.record_root(6, hash_entry_durable);
  const auto refused = journal.start();
  REQUIRE_FALSE(refused);
  CHECK(refused.error().code == ErrorCode::corrupt);
  CHECK(refused.error().message.find("the hash log's last root of a durable batch is of batch 6") != std::string::npos);
  REQUIRE(journal.disk.rename(directory + "/" + hash_log_name, directory + "/hashlog.bad"));
  CHECK(journal.start());
}

TEST_CASE("a root of a batch that was not known to be durable is no evidence, and the tools name it") {
  Journal journal(6);
  journal.record_root(6, 0);
  journal.lose_from(3);
  const auto info = inspect_journal(journal.disk, directory, InspectDepth::records);
  REQUIRE(info);
  CHECK(info->sound());
  REQUIRE_FALSE(info->findings.empty());
  CHECK(info->findings.back().evidence.find("roots up to batch 6") != std::string::npos);
  CHECK(journal.start());
}

TEST_CASE("a root recorded as durable with another chain is of another history") {
  Journal journal(20);
  std::swap(journal.history[11], journal.history[12]);
  journal.record_root(12, hash_entry_durable);
  const auto refused = journal.start();
  REQUIRE_FALSE(refused);
  CHECK(refused.error().code == ErrorCode::corrupt);
  CHECK(refused.error().message.find("two histories were mixed") != std::string::npos);
}

TEST_CASE("a verification names a hash log that a start refuses, makes anew or cuts") {
  Journal journal(5);
  journal.record_root(3, hash_entry_durable);
  const std::string path = directory + "/" + hash_log_name;
  const auto look = [&](const MemoryDisk& disk) {
    MemoryDisk copy = disk.copy();
    const auto info = inspect_journal(copy, directory, InspectDepth::records);
    REQUIRE_MESSAGE(info, info.error().message);
    REQUIRE(info->findings.size() == 1);
    CHECK(info->findings[0].file == path);
    return info->sound();
  };
  MemoryDisk torn = journal.disk.copy();
  torn.put(path, std::vector<std::byte>(100));
  CHECK(look(torn));
  MemoryDisk entry = journal.disk.copy();
  entry.flip_bit(path, (sizeof(HashLogHeader) + 60) * 8);
  CHECK(look(entry));
  for (const auto filling : {std::byte{0}, std::byte{0x5a}}) {
    MemoryDisk header = journal.disk.copy();
    header.overwrite(path, 0, std::vector(sizeof(HashLogHeader), filling));
    CHECK_FALSE(look(header));
  }
}

}  // namespace
}  // namespace lockstep
