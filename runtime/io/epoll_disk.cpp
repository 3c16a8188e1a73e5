// SPDX-License-Identifier: Apache-2.0
#include "runtime/io/epoll_disk.hpp"

#include <cerrno>
#include <utility>

namespace lockstep::io {

EpollDisk::EpollDisk(const std::function<void()>& notify)
    : writers_("lockstep-write", 2, notify), background_("lockstep-disk", 1, notify) {}

void EpollDisk::submit_write(FileId file, std::uint64_t offset, std::span<const iovec> pieces, std::uint64_t token) {
  const std::uint32_t slot = operations_.begin(file, pieces, token);
  auto write = [fd = static_cast<int>(file), offset, list = operations_.pieces(slot)] {
    const ssize_t put = ::pwritev(fd, list.data(), static_cast<int>(list.size()), static_cast<off_t>(offset));
    return put < 0 ? std::int64_t{-errno} : std::int64_t{put};
  };
  writers_.submit(write, slot);
}

void EpollDisk::submit_sync(FileId file, std::uint64_t token) {
  const std::uint32_t slot = operations_.begin(file, {}, token);
  auto sync = [fd = static_cast<int>(file)] { return ::fdatasync(fd) == 0 ? std::int64_t{0} : std::int64_t{-errno}; };
  writers_.submit(sync, slot);
}

void EpollDisk::submit_background(std::function<Result<void>(Disk&)> work, std::uint64_t token) {
  background_.submit([task = std::move(work)] { return run_background(task); }, token);
}

std::size_t EpollDisk::gather() {
  if (writers_.collect(finished_)) {
    for (const DiskCompletion& finished : finished_)
      gathered_.push_back(operations_.end(static_cast<std::uint32_t>(finished.token), finished.result));
    finished_.clear();
  }
  background_.collect(gathered_);
  return gathered_.size();
}

std::span<const DiskCompletion> EpollDisk::poll() {
  gather();
  handed_out_.clear();
  std::swap(handed_out_, gathered_);
  return handed_out_;
}

}  // namespace lockstep::io
