// SPDX-License-Identifier: Apache-2.0
#include "runtime/io/epoll_disk.hpp"

#include <cerrno>
#include <utility>

namespace lockstep::io {

EpollDisk::EpollDisk(const std::function<void()>& notify)
    : writers_("lockstep-write", 2, notify), background_("lockstep-disk", 1, notify) {}

void EpollDisk::submit_write(FileId file, std::uint64_t offset, std::span<const iovec> pieces, std::uint64_t token) {
  auto write = [fd = static_cast<int>(file), offset, list = std::vector(pieces.begin(), pieces.end())] {
    const ssize_t put = ::pwritev(fd, list.data(), static_cast<int>(list.size()), static_cast<off_t>(offset));
    return put < 0 ? std::int64_t{-errno} : std::int64_t{put};
  };
  writers_.submit(std::move(write), token);
}

void EpollDisk::submit_sync(FileId file, std::uint64_t token) {
  auto sync = [fd = static_cast<int>(file)] { return ::fdatasync(fd) == 0 ? std::int64_t{0} : std::int64_t{-errno}; };
  writers_.submit(std::move(sync), token);
}

void EpollDisk::submit_background(std::function<Result<void>(Disk&)> work, std::uint64_t token) {
  background_.submit([this, task = std::move(work)] { return run_background(task, *this); }, token);
}

std::size_t EpollDisk::gather() {
  writers_.collect(gathered_);
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
