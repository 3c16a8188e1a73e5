// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include "journal/testing/batches.hpp"
#include "journal/testing/heap_count.hpp"
#include "journal/testing/memory_disk.hpp"
#include "journal/writer.hpp"

namespace lockstep {
namespace {

/// Takes every write and sync as done, so that only the writer's own allocations are left; blocking calls go to a
/// MemoryDisk.
class AcceptingDisk final : public Disk {
 public:
  AcceptingDisk() { done_.reserve(64), reported_.reserve(64); }
  Result<FileId> open(const std::string& path, OpenMode mode) override { return files_.open(path, mode); }
  void close(FileId file) override { files_.close(file); }
  Result<std::uint64_t> size(FileId file) override { return files_.size(file); }
  Result<std::size_t> read(FileId file, std::uint64_t offset, std::span<std::byte> into) override {
    return files_.read(file, offset, into);
  }
  Result<void> write(FileId file, std::uint64_t offset, std::span<const std::byte> bytes) override {
    return files_.write(file, offset, bytes);
  }
  Result<void> sync(FileId file) override { return files_.sync(file); }
  Result<void> sync_directory(const std::string& path) override { return files_.sync_directory(path); }
  Result<void> zero_fill(FileId file, std::uint64_t bytes) override { return files_.zero_fill(file, bytes); }
  Result<void> truncate(FileId file, std::uint64_t bytes) override { return files_.truncate(file, bytes); }
  Result<void> rename(const std::string& from, const std::string& to) override { return files_.rename(from, to); }
  Result<void> remove(const std::string& path) override { return files_.remove(path); }
  Result<void> make_directory(const std::string& path) override { return files_.make_directory(path); }
  Result<std::vector<std::string>> list(const std::string& path) override { return files_.list(path); }
  Result<std::shared_ptr<std::byte[]>> map_shared(const std::string& path, std::size_t bytes) override {
    return files_.map_shared(path, bytes);
  }
  Result<void> lock(FileId file) override { return files_.lock(file); }
  Result<FileId> open_directory(const std::string& path) override { return files_.open_directory(path); }

  void submit_write(FileId, std::uint64_t, std::span<const iovec> pieces, std::uint64_t token) override {
    std::int64_t bytes = 0;
    for (const iovec& piece : pieces) bytes += static_cast<std::int64_t>(piece.iov_len);
    done_.push_back({token, bytes});
  }
  void submit_sync(FileId, std::uint64_t token) override { done_.push_back({token, 0}); }
  void submit_background(std::function<Result<void>(Disk&)> work, std::uint64_t token) override {
    done_.push_back({token, work(*this) ? 0 : -5});
  }
  std::span<const DiskCompletion> poll() override {
    reported_.swap(done_);
    done_.clear();
    return reported_;
  }

 private:
  MemoryDisk files_;
  std::vector<DiskCompletion> done_;
  std::vector<DiskCompletion> reported_;
};

TEST_CASE("appending and polling allocate nothing within a segment") {
  AcceptingDisk disk;
  auto recovered = recover(disk, {.directory = "data"});
  REQUIRE(recovered);
  auto writer = JournalWriter::open(disk, std::move(*recovered), {.segment_bytes = 32 << 20}, {});
  REQUIRE(writer);
  for (int i = 0; i < 20; ++i) (*writer)->poll(0);
  BatchMaker maker(1);
  std::vector<OwnedBatch> batches;
  batches.reserve(500);
  for (int i = 0; i < 500; ++i) batches.push_back(maker.make_random(10, 4000));

  const std::uint64_t before = heap_count().allocations;
  std::int64_t now_ns = 0;
  for (const OwnedBatch& batch : batches) {
    while (!(*writer)->can_append()) (*writer)->poll(now_ns += 1000);
    (*writer)->append(batch.view());
    if (batch.header.index % 100 == 0) now_ns += 5'000'000;  // an idle moment: a MARK
    (*writer)->poll(now_ns += 1000);
  }
  while ((*writer)->durable_index() < batches.size()) (*writer)->poll(now_ns += 1000);
  CHECK(heap_count().allocations == before);
  CHECK((*writer)->counters().segments == 1);
}

}  // namespace
}  // namespace lockstep
