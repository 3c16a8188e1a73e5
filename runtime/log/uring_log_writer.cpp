// SPDX-License-Identifier: Apache-2.0
#include "runtime/log/uring_log_writer.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>

#include "base/system_error.hpp"
#include "runtime/io/io_caps.hpp"

namespace lockstep {

Result<std::unique_ptr<UringLogWriter>> UringLogWriter::open(int fd, std::uint64_t offset, const Options& options) {
  std::unique_ptr<UringLogWriter> writer(new UringLogWriter(fd, offset, options));
  const std::uint32_t entries = std::max(64U, options.buffers);
  const int result = options.poller
                         ? writer->ring_.open_polled(entries, 2 * entries, static_cast<unsigned>(options.poller->cpu),
                                                     options.poller->idle_ms)
                         : writer->ring_.open(entries, 2 * entries);
  if (result == -EINVAL && options.poller)
    return fail(ErrorCode::usage, fmt::format("sqpoll_cpu {}: the kernel refuses to poll there; name a CPU that is "
                                              "online and that this process may use",
                                              options.poller->cpu));
  if (result != 0) return std::unexpected(io::ring_unavailable(-result));
  return writer;
}

UringLogWriter::UringLogWriter(int fd, std::uint64_t offset, const Options& options)
    : fd_(fd), end_(offset), buffer_bytes_(options.buffer_bytes), slots_(options.buffers) {
  for (Slot& slot : slots_) slot.memory = AlignedBuffer(buffer_bytes_);
}

int UringLogWriter::bind() {
  return -ring_.bind_to_this_thread();
}

std::span<std::byte> UringLogWriter::buffer() {
  while (error_ == 0 && begun_ - ended_ == slots_.size()) wait();
  if (error_ != 0) return {};
  return slots_[begun_ % slots_.size()].memory.span().first(buffer_bytes_);
}

void UringLogWriter::write(std::size_t bytes) {
  if (error_ != 0) return;
  const auto index = static_cast<std::uint32_t>(begun_++ % slots_.size());
  Slot& slot = slots_[index];
  slot.offset = end_;
  slot.bytes = bytes;
  slot.done = 0;
  end_ += bytes;
  submit(index);
  ring_.submit_and_gather();
}

void UringLogWriter::submit(std::uint32_t slot) {
  const Slot& from = slots_[slot];
  ring_.queue({io::TagKind::write, 0, slot}, [&](io_uring_sqe* entry) {
    io_uring_prep_write(entry, fd_, from.memory.data() + from.done, static_cast<unsigned>(from.bytes - from.done),
                        from.offset + from.done);
  });
  ++in_flight_;
}

void UringLogWriter::poll() {
  if (in_flight_ == 0) return;
  ring_.submit_and_gather();
  reap();
}

void UringLogWriter::finish() {
  while (in_flight_ != 0) wait();
}

void UringLogWriter::wait() {
  ring_.submit_and_sleep(-1);
  reap();
}

void UringLogWriter::reap() {
  ring_.reap([this](const io::RingCompletion& completion) { complete(completion.tag.slot, completion.result); });
  while (ended_ != begun_ && slots_[ended_ % slots_.size()].done == slots_[ended_ % slots_.size()].bytes) ++ended_;
}

void UringLogWriter::complete(std::uint32_t slot, std::int32_t result) {
  --in_flight_;
  if (result > 0) slots_[slot].done += static_cast<std::size_t>(result);
  const bool again = result > 0 || result == -EINTR || result == -EAGAIN;
  if (!again && error_ == 0) error_ = result == 0 ? EIO : -result;  // 0: a device that takes nothing, without a reason
  if (error_ == 0 && slots_[slot].done < slots_[slot].bytes) submit(slot);
}

std::uint64_t UringLogWriter::written_end() const {
  if (ended_ == begun_) return end_;
  const Slot& oldest = slots_[ended_ % slots_.size()];
  return oldest.offset + oldest.done;
}

Result<void> check_polling_cpu(int cpu, std::span<const int> allowed, std::size_t busy_threads) {
  if (std::ranges::find(allowed, cpu) == allowed.end())
    return fail(ErrorCode::usage,
                fmt::format("sqpoll_cpu {}: this process may not use that CPU; name one of its own", cpu));
  if (allowed.size() > busy_threads) return {};
  return fail(
      ErrorCode::usage,
      fmt::format("sqpoll_cpu {}: the polling thread needs a CPU beside those of the {} threads that append and "
                  "write, and there are {}; on a shared one it stalls them for milliseconds "
                  "(docs/failure-modes.md). Leave sqpoll_cpu out, or insist with sqpoll_forced",
                  cpu, busy_threads, allowed.size()));
}

}  // namespace lockstep
