// SPDX-License-Identifier: Apache-2.0
#include "bench/journal_modes/durable.hpp"

#include <fmt/format.h>
#include <sys/uio.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <memory>
#include <vector>

#include "base/clock.hpp"
#include "bench/support/need.hpp"
#include "journal/format.hpp"
#include "journal/posix_disk.hpp"
#include "journal/reader.hpp"
#include "journal/testing/batches.hpp"
#include "journal/writer.hpp"
#include "runtime/io/reactor.hpp"
#include "runtime/io/ring.hpp"

namespace lockstep::bench {
namespace {

constexpr std::uint32_t in_flight = 8;  // as the journal's own default
constexpr std::uint64_t segment_bytes = 64 << 20;
constexpr std::uint32_t record_payload_bytes = 128;

/// Lengths of records that come to exactly one block.
std::vector<std::uint32_t> lengths_for(std::uint32_t block_bytes) {
  if (block_bytes == disk_block_bytes) return {record_payload_bytes};
  const std::uint32_t payload_bytes = block_bytes - block_header_bytes(block_bytes - disk_block_bytes);
  std::vector<std::uint32_t> lengths(payload_bytes / record_bytes(record_payload_bytes), record_payload_bytes);
  const auto rest = static_cast<std::uint32_t>(payload_bytes - lengths.size() * record_bytes(record_payload_bytes));
  if (rest >= sizeof(RecordHeader)) lengths.push_back(rest - static_cast<std::uint32_t>(sizeof(RecordHeader)));
  return lengths;
}

double seconds_since(std::int64_t began_ns) {
  return static_cast<double>(SystemClock{}.steady_ns() - began_ns) / 1e9;
}

std::size_t segments_in(const std::string& directory) {
  const auto is_segment = [](const auto& entry) { return entry.path().extension() == ".jnl"; };
  return static_cast<std::size_t>(std::ranges::count_if(std::filesystem::directory_iterator(directory), is_segment));
}

/// A new journal with its first segment begun and the next one made, so that nothing else goes on.
class FreshJournal {
 public:
  explicit FreshJournal(const std::string& directory)
      : directory_(directory),
        reactor_(need(io::make_reactor(io::Backend::automatic))),
        writer_(need(JournalWriter::open(
            reactor_->disk(), need(recover(reactor_->disk(), {.directory = directory})),
            {.segment_bytes = segment_bytes, .max_inflight = in_flight, .spare_segments = 1}, {}))) {
    constexpr std::int64_t quiet_ns = 20'000'000;
    // A segment gets its name when it is whole; the hard state that counts it is stored behind that.
    for (std::int64_t busy_ns = now_ns(); now_ns() - busy_ns < quiet_ns || !writer_->can_append();)
      if (turn_or_wait(1'000'000) != 0 || segments_in(directory_) < 2) busy_ns = now_ns();
  }
  ~FreshJournal() { std::filesystem::remove_all(directory_); }
  FreshJournal(const FreshJournal&) = delete;
  FreshJournal& operator=(const FreshJournal&) = delete;

  [[nodiscard]] JournalWriter& writer() { return *writer_; }
  int turn() {
    const int done = reactor_->turn() + writer_->poll(now_ns());
    if (writer_->failure()) give_up(writer_->failure()->message);
    return done;
  }
  /// A turn, and when it did nothing, sleep until there is something to do; how much it did.
  int turn_or_wait(std::int64_t timeout_ns = -1) {
    const int done = turn();
    if (done == 0) reactor_->wait(timeout_ns);
    return done;
  }
  void check(const std::vector<OwnedBatch>& batches) {
    need(writer_->close([this] { reactor_->turn(); }));
    writer_.reset();
    PosixDisk disk;
    auto reader = need(JournalReader::open(disk, directory_, 1));
    for (const OwnedBatch& batch : batches) {
      const auto found = need(reader.next());
      if (!found || found->header->chain != batch.header.chain ||
          !std::ranges::equal(found->payload, batch.view().payload))
        give_up(fmt::format("{}: batch {} is not as it was appended", directory_, batch.header.index));
    }
  }

 private:
  static std::int64_t now_ns() { return SystemClock{}.steady_ns(); }

  std::string directory_;
  std::unique_ptr<io::Reactor> reactor_;
  std::unique_ptr<JournalWriter> writer_;
};

/// The disk alone.
class RawFile {
 public:
  /// Writes blocks of `block_bytes` out of `source`, one behind the other.
  RawFile(const std::string& path, std::span<const std::byte> source, std::uint32_t block_bytes)
      : path_(path), source_(source), block_bytes_(block_bytes) {
    file_ = need(disk_.open(path, OpenMode::create_direct));
    need(disk_.zero_fill(file_, segment_bytes));
    need(disk_.sync(file_));
    if (ring_.open(64, 128) != 0 || ring_.bind_to_this_thread() != 0) give_up("this host has no io_uring");
  }
  ~RawFile() {
    ring_.close();
    std::filesystem::remove(path_);
  }
  RawFile(const RawFile&) = delete;
  RawFile& operator=(const RawFile&) = delete;

  void write_next(int flags = 0) {
    ring_.queue({io::TagKind::write, 0, 0}, [&](io_uring_sqe* entry) {
      io_uring_prep_write(entry, static_cast<int>(file_), source_.data() + offset_, block_bytes_, offset_);
      entry->rw_flags = flags;
    });
    offset_ += block_bytes_;
  }
  void sync() {
    ring_.queue({io::TagKind::sync, 0, 0}, [&](io_uring_sqe* entry) {
      io_uring_prep_fsync(entry, static_cast<int>(file_), IORING_FSYNC_DATASYNC);
    });
  }
  /// Sleeps until something has ended; writes and syncs that have, since the beginning, are in `writes` and `syncs`.
  void wait() {
    ring_.submit_and_sleep(-1);
    ring_.reap([this](const io::RingCompletion& completion) {
      const bool wrote = completion.tag.kind == io::TagKind::write;
      if (completion.result != (wrote ? static_cast<std::int32_t>(block_bytes_) : 0)) give_up("the raw file failed");
      ++(wrote ? writes : syncs);
    });
  }

  std::uint32_t writes = 0;
  std::uint32_t syncs = 0;

 private:
  std::string path_;
  PosixDisk disk_;
  FileId file_ = FileId::none;
  std::span<const std::byte> source_;
  std::uint32_t block_bytes_;
  std::uint64_t offset_ = 0;
  io::Ring ring_;
};

}  // namespace

struct DurableLoad::Blocks {
  std::uint32_t block_bytes;
  std::vector<OwnedBatch> batches;
  AlignedBuffer bytes;  ///< for the disk alone: as many, as different, each from memory of its own
};

DurableLoad::DurableLoad(std::uint32_t block_bytes, std::uint32_t blocks)
    : blocks_(std::make_unique<Blocks>(block_bytes, std::vector<OwnedBatch>(),
                                       AlignedBuffer(std::size_t{block_bytes} * blocks))) {
  BatchMaker maker(1);
  for (std::uint32_t i = 0; i < blocks; ++i) {
    blocks_->batches.push_back(maker.make(lengths_for(block_bytes)));
    const auto payload = blocks_->batches.back().view().payload;
    std::memcpy(blocks_->bytes.data() + std::size_t{block_bytes} * i, payload.data(),
                std::min<std::size_t>(payload.size(), block_bytes));
  }
  const std::uint32_t made_bytes = block_total_bytes(blocks_->batches.front().header.payload_bytes);
  if (made_bytes != block_bytes) give_up(fmt::format("a block has {} bytes instead of {}", made_bytes, block_bytes));
}

DurableLoad::~DurableLoad() = default;

double DurableLoad::bytes() const {
  return static_cast<double>(blocks_->block_bytes) * static_cast<double>(blocks_->batches.size());
}

double DurableLoad::journal_seconds(const std::string& directory) const {
  FreshJournal journal(directory + "/journal");
  JournalWriter& writer = journal.writer();
  std::size_t appended = 0;
  const std::int64_t began_ns = SystemClock{}.steady_ns();
  while (writer.durable_index() < blocks_->batches.size()) {
    if (appended < blocks_->batches.size() && writer.can_append()) {
      writer.append(blocks_->batches[appended++].view());
      journal.turn();
    } else {
      journal.turn_or_wait();
    }
  }
  const double seconds = seconds_since(began_ns);
  journal.check(blocks_->batches);
  return seconds;
}

double DurableLoad::raw_seconds(const std::string& directory) const {
  RawFile file(directory + "/raw", blocks_->bytes.span(), blocks_->block_bytes);
  const auto blocks = static_cast<std::uint32_t>(blocks_->batches.size());
  std::uint32_t submitted = 0;
  std::uint32_t durable = 0;
  std::uint32_t covered = 0;  // by the sync that runs
  std::uint32_t syncs = 0;
  const std::int64_t began_ns = SystemClock{}.steady_ns();
  while (durable < blocks) {
    for (; submitted < blocks && submitted - durable < in_flight; ++submitted) file.write_next();
    if (syncs == file.syncs && file.writes > durable) {
      covered = file.writes;
      ++syncs;
      file.sync();
    }
    file.wait();
    if (file.syncs == syncs) durable = covered;
  }
  return seconds_since(began_ns);
}

Histogram DurableLoad::journal_latency_ns(const std::string& directory) const {
  FreshJournal journal(directory + "/journal");
  JournalWriter& writer = journal.writer();
  Histogram latency_ns;
  for (const OwnedBatch& batch : blocks_->batches) {
    while (!writer.can_append()) journal.turn_or_wait();
    const std::int64_t began_ns = SystemClock{}.steady_ns();
    writer.append(batch.view());
    while (writer.durable_index() < batch.header.index) journal.turn_or_wait();
    latency_ns.add(static_cast<std::uint64_t>(SystemClock{}.steady_ns() - began_ns));
  }
  journal.check(blocks_->batches);
  return latency_ns;
}

Histogram DurableLoad::raw_latency_ns(const std::string& directory) const {
  RawFile file(directory + "/raw", blocks_->bytes.span(), blocks_->block_bytes);
  Histogram latency_ns;
  for (std::uint32_t i = 1; i <= blocks_->batches.size(); ++i) {
    const std::int64_t began_ns = SystemClock{}.steady_ns();
    file.write_next();
    while (file.writes < i) file.wait();
    file.sync();
    while (file.syncs < i) file.wait();
    latency_ns.add(static_cast<std::uint64_t>(SystemClock{}.steady_ns() - began_ns));
  }
  return latency_ns;
}

Histogram DurableLoad::dsync_latency_ns(const std::string& directory) const {
  RawFile file(directory + "/raw", blocks_->bytes.span(), blocks_->block_bytes);
  Histogram latency_ns;
  for (std::uint32_t i = 1; i <= blocks_->batches.size(); ++i) {
    const std::int64_t began_ns = SystemClock{}.steady_ns();
    file.write_next(RWF_DSYNC);
    while (file.writes < i) file.wait();
    latency_ns.add(static_cast<std::uint64_t>(SystemClock{}.steady_ns() - began_ns));
  }
  return latency_ns;
}

}  // namespace lockstep::bench
