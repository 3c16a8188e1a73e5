// SPDX-License-Identifier: Apache-2.0

/// Cases out of public bug reports on other journals, by the numbers tests/faults/cases.md gives them: those that no
/// test beside a header has already. Letters are the table's groups.

#include <doctest/doctest.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstring>

#include "journal/directory.hpp"
#include "journal/hash_log.hpp"
#include "journal/inspect.hpp"
#include "journal/testing/journal_run.hpp"
#include "journal/testing/memory_disk.hpp"

namespace lockstep {
namespace {

const std::string directory = "data";

std::string segment_path(std::uint64_t id) {
  return directory + "/" + segment_name(id);
}

/// A process on a journal, and what it appended.
struct Case {
  explicit Case(std::uint64_t seed = 1) : disk(seed) { start(seed); }
  ~Case() { disk.complete_only(UINT64_MAX); }
  Case(const Case&) = delete;
  Case& operator=(const Case&) = delete;

  void start(std::uint64_t seed) {
    run.reset();
    auto started = JournalRun::start(disk, directory, history, seed);
    REQUIRE_MESSAGE(started, started.error().message);
    run = std::move(*started);
    poll();
  }
  void poll() {
    for (int i = 0; i < 10; ++i) run->poll();
  }
  void append(const std::vector<std::uint32_t>& lengths) {
    REQUIRE(run->append(run->maker().make(lengths)));
    REQUIRE(run->settle());
  }
  void append_some(int batches) {
    for (int i = 0; i < batches; ++i) REQUIRE(run->append_random());
    REQUIRE(run->settle());
  }
  void leave_in_flight(const std::vector<std::vector<std::uint32_t>>& batches) {
    disk.complete_only(0);
    for (const auto& lengths : batches) REQUIRE(run->append(run->maker().make(lengths)));
  }
  void idle() {
    run->advance(10'000'000);
    poll();
  }
  void kill() { run.reset(); }
  [[nodiscard]] std::vector<std::uint64_t> blocks(std::uint64_t id) const {
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
  [[nodiscard]] std::uint64_t end_of(std::uint64_t id) const {
    BlockHeader last;
    const std::uint64_t at = blocks(id).back();
    std::memcpy(&last, disk.bytes(segment_path(id)).data() + at, sizeof last);
    return at + last.total_bytes;
  }

  MemoryDisk disk;
  std::vector<BatchHeader> history;
  std::unique_ptr<JournalRun> run;
};

std::optional<ErrorCode> refusal(MemoryDisk& disk, std::vector<Finding>* findings = nullptr) {
  const auto recovered = recover(disk, {.directory = directory}, findings);
  if (recovered) return std::nullopt;
  return recovered.error().code;
}

std::uint64_t recovered_index(MemoryDisk& disk) {
  const auto recovered = recover(disk, {.directory = directory});
  REQUIRE_MESSAGE(recovered, recovered.error().message);
  return recovered->position.index;
}

// A. Torn tails

TEST_CASE("T02: of several batches under way, all behind the first incomplete one are cut, complete or not") {
  Case four;
  four.append({100});
  four.leave_in_flight({{100}, {100}, {100}, {100}});
  REQUIRE(four.disk.questions(disk_block_bytes) == 4);
  for (std::uint64_t subset = 0; subset < 16; ++subset) {
    MemoryDisk after =
        four.disk.after_power_cut([&](std::size_t n) { return (subset >> n & 1) != 0; }, disk_block_bytes);
    CHECK(recovered_index(after) == 1 + static_cast<std::uint64_t>(std::countr_one(subset)));
    CHECK(read_and_compare(after, directory, four.history).value() == recovered_index(after));
  }
}

TEST_CASE("T03: a batch of which only the second half is there is cut") {
  Case halves;
  halves.append({100});
  halves.leave_in_flight({{12000}});
  const std::size_t sectors = halves.disk.questions(disk_block_bytes);
  REQUIRE(sectors == 4);
  MemoryDisk after = halves.disk.after_power_cut([&](std::size_t n) { return n >= 2; }, disk_block_bytes);
  CHECK(recovered_index(after) == 1);
}

TEST_CASE("T04: any tear of a sector at 512 bytes is torn, never damage") {
  Case torn;
  torn.append({100});
  torn.leave_in_flight({{100}});
  REQUIRE(torn.disk.questions() == 8);
  for (std::uint64_t subset = 0; subset < 256; ++subset) {
    MemoryDisk after = torn.disk.after_power_cut([&](std::size_t n) { return (subset >> n & 1) != 0; });
    CHECK(recovered_index(after) == (subset == 255 ? 2 : 1));
  }
}

TEST_CASE("T05, T06: behind a cut a new segment begins, and all that is appended there is found again") {
  Case torn;
  torn.append_some(5);
  torn.leave_in_flight({{3000}, {100}});
  MemoryDisk after = torn.disk.after_power_cut([](std::size_t n) { return n % 2 == 1; });
  std::vector<BatchHeader> history = torn.history;
  for (std::uint64_t life = 2; life <= 4; ++life) {
    auto run = JournalRun::start(after, directory, history, life);
    REQUIRE_MESSAGE(run, run.error().message);
    const auto sealed =
        std::vector(after.bytes(segment_path(life - 1)).begin(), after.bytes(segment_path(life - 1)).end());
    for (int i = 0; i < 3; ++i) REQUIRE((*run)->append_random());
    REQUIRE((*run)->settle());
    CHECK(std::ranges::equal(sealed, after.bytes(segment_path(life - 1))));
    CHECK(after.bytes(segment_path(life))[sizeof(SegmentHeader)] != std::byte{0});
    run->reset();
  }
  CHECK(recovered_index(after) == 5 + 3 * 3);
  CHECK(read_and_compare(after, directory, history).value() == 5 + 3 * 3);
}

TEST_CASE("T07: complete blocks behind a cut come back neither as batches nor as evidence") {
  Case stale;
  stale.append({100});
  stale.leave_in_flight({{100}, {100}, {100}});
  MemoryDisk after = stale.disk.after_power_cut([](std::size_t n) { return n >= 8; });  // all but the first
  std::vector<BatchHeader> history = stale.history;
  const auto with_stale = std::vector(after.bytes(segment_path(1)).begin(), after.bytes(segment_path(1)).end());
  for (std::uint64_t nth = 1; nth < 30; ++nth) {
    MemoryDisk cut = after.copy();
    std::vector<BatchHeader> seen = history;
    cut.fail_at(nth, DiskFault::power_cut, EIO);
    if (auto run = JournalRun::start(cut, directory, seen, 5); run) {
      (*run)->append((*run)->maker().make({}));
      (*run)->settle();
    }
    MemoryDisk left = cut.after_power_cut(nth);
    seen.resize(std::min<std::size_t>(seen.size(), 2));
    const std::uint64_t index = recovered_index(left);
    CHECK(index <= 2);
    if (index == 2 && seen.size() == 2) CHECK(read_and_compare(left, directory, seen).value() == 2);
  }
}

TEST_CASE("T09: all headers under way torn at once are a torn tail") {
  Case headers;
  headers.append({100});
  headers.leave_in_flight({{5000}, {5000}, {5000}, {5000}});
  for (std::size_t piece = 0; piece < 8; ++piece) {
    MemoryDisk after = headers.disk.after_power_cut([&](std::size_t n) { return n % 24 >= 8 || n % 24 != piece; });
    std::vector<Finding> findings;
    CHECK_FALSE(refusal(after, &findings));
    CHECK(recovered_index(after) >= 1);
  }
}

TEST_CASE("T10: a segment whose making was cut short at any step, or half a file, is ignored or made again") {
  for (std::uint64_t nth = 1; nth <= 24; ++nth) {
    MemoryDisk disk(nth);
    std::vector<BatchHeader> history;
    {
      auto run = JournalRun::start(disk, directory, history, 1);
      REQUIRE(run);
      disk.fail_at(nth, DiskFault::power_cut, EIO);
      for (int i = 0; i < 10; ++i) (*run)->poll();
    }
    for (std::uint64_t seed = 0; seed < 8; ++seed) {
      MemoryDisk after = disk.after_power_cut(seed);
      std::vector<BatchHeader> none;
      auto run = JournalRun::start(after, directory, none, 2);
      REQUIRE_MESSAGE(run, run.error().message);
      REQUIRE((*run)->append_random());
      REQUIRE((*run)->settle());
    }
  }
  for (const std::size_t bytes : {std::size_t{0}, std::size_t{512}, sizeof(SegmentHeader), min_segment_bytes}) {
    Case half;
    half.append_some(3);
    half.kill();
    half.disk.put(segment_path(9) + ".tmp", std::vector<std::byte>(bytes));
    half.start(2);
    half.append_some(2);
  }
}

// B. Corruption of acknowledged data

TEST_CASE("T13: a damaged or shortened segment before a sound one refuses the start, and nothing is replayed over it") {
  for (std::size_t cut = 1; cut < 40; ++cut) {
    Case two;
    two.append_some(20);
    two.kill();
    const std::uint64_t end = two.end_of(1);
    const auto bytes = two.disk.bytes(segment_path(1));
    const auto size = static_cast<std::ptrdiff_t>(end * cut / 40);
    two.disk.put(segment_path(1), {bytes.begin(), bytes.begin() + size});
    CHECK(refusal(two.disk) == ErrorCode::corrupt);
    const auto read = read_and_compare(two.disk, directory, two.history);
    CHECK_FALSE(read);
  }
}

TEST_CASE("T15: a middle batch whose first sector, or length alone, is zero is damage and no end") {
  for (const std::size_t bytes : {disk_block_bytes, std::size_t{0}}) {
    Case middle;
    middle.append_some(6);
    middle.idle();
    middle.kill();
    const std::uint64_t at = middle.blocks(1)[2];
    const std::size_t length_bytes = sizeof(BlockHeader::total_bytes) + sizeof(BlockHeader::payload_bytes);
    const std::uint64_t from = at + (bytes == 0 ? offsetof(BlockHeader, total_bytes) : 0);
    middle.disk.overwrite(segment_path(1), from, std::vector<std::byte>(bytes == 0 ? length_bytes : bytes));
    CHECK(refusal(middle.disk) == ErrorCode::corrupt);
  }
}

TEST_CASE("T16: sound blocks of another segment behind the end are old content: not replayed, and no alarm") {
  Case reused;
  reused.append_some(20);
  reused.kill();
  reused.start(2);
  reused.append_some(2);
  reused.idle();
  reused.kill();
  const auto segments = list_journal(reused.disk, directory)->segments;
  const std::uint64_t last = segments[segments.size() - 1 - small_journal.spare_segments];
  REQUIRE(last > 1);
  const auto first = reused.disk.bytes(segment_path(1));
  const std::uint64_t end = reused.end_of(last);
  for (const std::uint64_t at : reused.blocks(1)) {
    const auto old = first.subspan(at, disk_block_bytes);
    reused.disk.overwrite(segment_path(last), end, std::vector(old.begin(), old.end()));
    MemoryDisk disk = reused.disk.copy();
    std::vector<Finding> findings;
    REQUIRE_FALSE(refusal(disk, &findings));
    CHECK(std::ranges::all_of(findings, [](const Finding& f) { return f.tail == TailClass::torn; }));
    CHECK(read_and_compare(disk, directory, reused.history).value() == 22);
  }
}

TEST_CASE("T22: a sector of a sealed segment filled at random refuses the start") {
  std::mt19937_64 random(22);
  for (std::size_t sector = 0; sector < 15; ++sector) {
    Case sealed;
    sealed.append_some(20);
    sealed.kill();
    std::vector<std::byte> garbage(disk_block_bytes);
    for (std::byte& byte : garbage) byte = static_cast<std::byte>(random());
    const std::uint64_t at = sector * disk_block_bytes;
    if (at >= sealed.end_of(1)) break;
    sealed.disk.overwrite(segment_path(1), at, garbage);
    CHECK(refusal(sealed.disk) == ErrorCode::corrupt);
  }
}

// C. Lost or extra files

TEST_CASE("T23: with every directory entry lost that no sync of its directory covers, nothing acknowledged is") {
  Case names;
  for (int i = 0; i < 60; ++i) {
    REQUIRE(names.run->append_random());
    names.run->poll();
    MemoryDisk after = names.disk.after_power_cut([](std::size_t) { return false; });
    CHECK(recovered_index(after) >= names.run->writer().durable_index());
  }
}

TEST_CASE("T26: a segment under another's name is refused, whatever the name says") {
  Case renamed;
  renamed.append_some(20);
  renamed.kill();
  const auto bytes = renamed.disk.bytes(segment_path(2));
  renamed.disk.put(segment_path(1), {bytes.begin(), bytes.end()});
  CHECK(refusal(renamed.disk) == ErrorCode::corrupt);
}

TEST_CASE("T28: the time in a segment's header decides nothing") {
  for (const std::int64_t created_ns : {std::int64_t{0}, std::int64_t{-1}, INT64_MIN, INT64_MAX}) {
    Case clock;
    clock.append_some(20);
    clock.kill();
    const auto segments = list_journal(clock.disk, directory)->segments;
    for (const std::uint64_t id : segments) {
      if (!clock.blocks(id).empty()) continue;  // blocks hang on their header's checksum
      SegmentHeader header;
      std::memcpy(&header, clock.disk.bytes(segment_path(id)).data(), sizeof header);
      header.created_ns = created_ns;
      finish_segment_header(header);
      clock.disk.overwrite(segment_path(id), 0, std::as_bytes(std::span(&header, 1)));
    }
    CHECK(recovered_index(clock.disk) == 20);
  }
}

TEST_CASE("T30: no block of a segment is on the disk before the SEAL of the one before it is there for good") {
  Case roll;
  roll.disk.shuffle_completions();
  int seen = 0;
  for (int turn = 0; turn < 600; ++turn) {
    if (roll.run->writer().can_append()) REQUIRE(roll.run->append_random());
    roll.run->poll();
    MemoryDisk most = roll.disk.after_power_cut([](std::size_t) { return true; });
    MemoryDisk least = roll.disk.after_power_cut([](std::size_t) { return false; });
    for (std::uint64_t id = 2; id <= list_journal(most, directory)->segments.size(); ++id) {
      if (most.bytes(segment_path(id))[sizeof(SegmentHeader)] == std::byte{0}) continue;
      const auto info = inspect_journal(least, directory, InspectDepth::blocks);
      REQUIRE_MESSAGE(info, info.error().message);
      REQUIRE(info->segments.size() >= id - 1);
      CHECK(info->segments[id - 2].sealed);
      ++seen;
    }
  }
  CHECK(seen > 100);
}

// D. fsync, EIO, disk full

TEST_CASE("T34: after a failed sync nothing is acknowledged, and a restart decides on what the medium holds") {
  for (std::uint64_t seed = 1; seed <= 30; ++seed) {
    Case gate(seed);
    gate.append_some(3);
    gate.leave_in_flight({{3000}, {3000}});
    gate.disk.complete_only(2);
    gate.poll();
    gate.disk.fail_at(1, DiskFault::error, EIO);
    gate.disk.complete_only(UINT64_MAX);
    gate.poll();
    REQUIRE(gate.run->writer().failure());
    CHECK(gate.run->writer().durable_index() == 3);
    CHECK_FALSE(gate.run->writer().close());
    gate.kill();
    const std::uint64_t index = recovered_index(gate.disk);
    CHECK(index >= 3);
    MemoryDisk after = gate.disk.after_power_cut(seed);
    CHECK(recovered_index(after) == index);
  }
}

TEST_CASE("T35: what a failed sync wrote all the same may be there after a restart, unacknowledged") {
  Case there;
  there.append({100});
  there.leave_in_flight({{100}});
  there.disk.complete_only(1);
  there.poll();
  MemoryDisk after = there.disk.after_power_cut([](std::size_t) { return true; });
  CHECK(there.run->writer().durable_index() == 1);
  CHECK(recovered_index(after) == 2);
  CHECK(read_and_compare(after, directory, there.history).value() == 2);
}

TEST_CASE("T38: half a segment left by a full disk is cleared away, and made when there is space") {
  MemoryDisk disk;
  std::vector<BatchHeader> history;
  {
    auto run = JournalRun::start(disk, directory, history, 1);
    REQUIRE(run);
    disk.set_free_bytes(3 * disk_block_bytes);
    for (int i = 0; i < 10; ++i) (*run)->poll();
    REQUIRE((*run)->writer().out_of_space());
  }
  disk.put(segment_path(1) + ".tmp", std::vector<std::byte>(3 * disk_block_bytes));
  disk.set_free_bytes(UINT64_MAX);
  auto run = JournalRun::start(disk, directory, history, 2);
  REQUIRE_MESSAGE(run, run.error().message);
  REQUIRE((*run)->append_random());
  REQUIRE((*run)->settle());
  const auto names = disk.list(directory);
  CHECK(std::ranges::none_of(*names, [](const std::string& name) { return name.ends_with(".tmp"); }));
}

TEST_CASE("T39: a hard state that knows more than the log holds refuses the start, without a crash") {
  Case ahead;
  ahead.append_some(5);
  ahead.kill();
  {
    auto file = HardStateFile::open(ahead.disk, directory);
    REQUIRE(file);
    HardState state = file->value();
    state.durable_index = 18'523'916;
    REQUIRE(file->store(state));
  }
  CHECK(refusal(ahead.disk) == ErrorCode::corrupt);
}

// G. Sizes and encoding

TEST_CASE("T54: an empty record, a batch without records and a payload of zeros are there after a restart") {
  Case empty;
  empty.append({0});
  empty.append({});
  empty.append({0, 0, 0});
  OwnedBatch zeros = empty.run->maker().make({5000});
  auto payload = zeros.buffer.span().subspan(sizeof(RecordHeader), 5000);
  std::ranges::fill(payload, std::byte{0});
  RecordHeader record;
  std::memcpy(&record, zeros.buffer.data(), sizeof record);
  record.check = record_check(record, payload);
  std::memcpy(zeros.buffer.data(), &record, sizeof record);
  zeros.header.payload_digest = xxh3_128(zeros.view().payload);
  zeros.header.chain = batch_chain(zeros.header);
  REQUIRE(empty.run->append(std::move(zeros)));
  REQUIRE(empty.run->settle());
  empty.kill();
  CHECK(recovered_index(empty.disk) == 4);
  CHECK(read_and_compare(empty.disk, directory, empty.history).value() == 4);
}

TEST_CASE("T60: a clean stop is no reason to look less closely at the next start") {
  Case stopped;
  stopped.append_some(6);
  REQUIRE(stopped.run->writer().close());
  stopped.kill();
  stopped.disk.flip_bit(segment_path(1), (stopped.blocks(1)[4] + 300) * 8);
  CHECK(refusal(stopped.disk) == ErrorCode::corrupt);
}

TEST_CASE("T61: a lost or damaged hash log is derived again, and a damaged SEAL is refused: same content or none") {
  Case index;
  index.append_some(20);
  index.kill();
  {
    auto log = HashLog::open(index.disk, directory, {}, 0, 20);
    REQUIRE(log);
    HashEntry entry;
    entry.index = 10;
    REQUIRE(log->append(entry));
  }
  MemoryDisk lost = index.disk.copy();
  REQUIRE(lost.remove(directory + "/" + hash_log_name));
  CHECK(recovered_index(lost) == 20);
  CHECK(read_and_compare(lost, directory, index.history).value() == 20);

  MemoryDisk damaged = index.disk.copy();
  damaged.flip_bit(directory + "/" + hash_log_name, (sizeof(HashLogHeader) + 70) * 8);
  auto log = HashLog::open(damaged, directory, {}, 0, 20);
  REQUIRE_MESSAGE(log, log.error().message);
  CHECK_FALSE(log->find(10).value());

  for (std::uint64_t bit = 0; bit < 512 * 8; bit += 67) {
    MemoryDisk seal = index.disk.copy();
    seal.flip_bit(segment_path(1), index.blocks(1).back() * 8 + bit);
    CHECK(refusal(seal) == ErrorCode::corrupt);
  }
}

// H. Tools

TEST_CASE("T67: a reader that met damage says so each time it is asked, and never stalls or goes on") {
  Case middle;
  middle.append_some(6);
  middle.idle();
  middle.kill();
  middle.disk.flip_bit(segment_path(1), (middle.blocks(1)[3] + 300) * 8);
  auto reader = JournalReader::open(middle.disk, directory);
  REQUIRE(reader);
  for (int i = 0; i < 3; ++i) REQUIRE(reader->next().value());
  for (int i = 0; i < 3; ++i) {
    const auto refused = reader->next();
    REQUIRE_FALSE(refused);
    CHECK(refused.error().code == ErrorCode::corrupt);
  }
}

}  // namespace
}  // namespace lockstep
