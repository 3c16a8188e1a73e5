// SPDX-License-Identifier: Apache-2.0
#include "runtime/io/uring_disk.hpp"

#include <utility>

#include "base/assert.hpp"

namespace lockstep::io {
namespace {

constexpr std::size_t initial_operations = 64;

}  // namespace

UringDisk::UringDisk(Ring& ring, const std::function<void()>& notify)
    : ring_(ring), background_("lockstep-disk", 1, notify) {
  operations_.reserve(initial_operations);
  free_.reserve(initial_operations);
  gathered_.reserve(initial_operations);
  handed_out_.reserve(initial_operations);
}

std::uint32_t UringDisk::take_slot(std::uint64_t token) {
  if (free_.empty()) {
    free_.push_back(static_cast<std::uint32_t>(operations_.size()));
    operations_.emplace_back();
  }
  const std::uint32_t slot = free_.back();
  free_.pop_back();
  operations_[slot].token = token;
  ++in_flight_;
  return slot;
}

void UringDisk::submit_write(FileId file, std::uint64_t offset, std::span<const iovec> pieces, std::uint64_t token) {
  const std::uint32_t slot = take_slot(token);
  Operation& operation = operations_[slot];
  operation.pieces.assign(pieces.begin(), pieces.end());
  ring_.queue({TagKind::write, operation.generation, slot}, [&](io_uring_sqe* entry) {
    const auto count = static_cast<unsigned>(operation.pieces.size());
    io_uring_prep_writev(entry, static_cast<int>(file), operation.pieces.data(), count, offset);
  });
}

void UringDisk::submit_sync(FileId file, std::uint64_t token) {
  const std::uint32_t slot = take_slot(token);
  ring_.queue({TagKind::sync, operations_[slot].generation, slot},
              [&](io_uring_sqe* entry) { io_uring_prep_fsync(entry, static_cast<int>(file), IORING_FSYNC_DATASYNC); });
}

void UringDisk::submit_background(std::function<Result<void>(Disk&)> work, std::uint64_t token) {
  background_.submit([this, task = std::move(work)] { return run_background(task, *this); }, token);
}

void UringDisk::on_completion(const RingCompletion& completion) {
  const Tag tag = completion.tag;
  Operation& operation = operations_[tag.slot];
  LOCKSTEP_ASSERT(tag.matches(operation.generation), "a disk operation completed twice");
  gathered_.push_back({operation.token, completion.result});
  ++operation.generation;
  free_.push_back(tag.slot);
  --in_flight_;
}

std::size_t UringDisk::gather() {
  background_.collect(gathered_);
  return gathered_.size();
}

std::span<const DiskCompletion> UringDisk::poll() {
  gather();
  handed_out_.clear();
  std::swap(handed_out_, gathered_);
  return handed_out_;
}

}  // namespace lockstep::io
