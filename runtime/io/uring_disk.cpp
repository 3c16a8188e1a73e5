// SPDX-License-Identifier: Apache-2.0
#include "runtime/io/uring_disk.hpp"

#include <utility>

#include "base/assert.hpp"

namespace lockstep::io {

UringDisk::UringDisk(Ring& ring, const std::function<void()>& notify)
    : ring_(ring), background_("lockstep-disk", 1, notify) {}

void UringDisk::submit_write(FileId file, std::uint64_t offset, std::span<const iovec> pieces, std::uint64_t token) {
  const std::uint32_t slot = operations_.begin(file, pieces, token);
  const std::span<const iovec> list = operations_.pieces(slot);
  ring_.queue({TagKind::write, operations_.generation(slot), slot}, [&](io_uring_sqe* entry) {
    io_uring_prep_writev(entry, static_cast<int>(file), list.data(), static_cast<unsigned>(list.size()), offset);
  });
}

void UringDisk::submit_sync(FileId file, std::uint64_t token) {
  const std::uint32_t slot = operations_.begin(file, {}, token);
  ring_.queue({TagKind::sync, operations_.generation(slot), slot},
              [&](io_uring_sqe* entry) { io_uring_prep_fsync(entry, static_cast<int>(file), IORING_FSYNC_DATASYNC); });
}

void UringDisk::submit_background(std::function<Result<void>(Disk&)> work, std::uint64_t token) {
  background_.submit([task = std::move(work)] { return run_background(task); }, token);
}

void UringDisk::on_completion(const RingCompletion& completion) {
  const Tag tag = completion.tag;
  LOCKSTEP_ASSERT(tag.matches(operations_.generation(tag.slot)), "a disk operation completed twice");
  gathered_.push_back(operations_.end(tag.slot, completion.result));
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
