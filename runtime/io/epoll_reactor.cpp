// SPDX-License-Identifier: Apache-2.0
#include "runtime/io/epoll_reactor.hpp"

#include <algorithm>
#include <cerrno>

#include "base/assert.hpp"
#include "base/clock.hpp"
#include "base/system_error.hpp"

namespace lockstep::io {

Result<std::unique_ptr<Reactor>> EpollReactor::make(const ReactorOptions& options) {
  Descriptor epoll(::epoll_create1(EPOLL_CLOEXEC));
  if (!epoll.is_open()) return system_failure("epoll_create1", "for a reactor", errno);
  auto reactor = std::make_unique<EpollReactor>(std::move(epoll), options);
  if (auto started = reactor->start(); !started) return std::unexpected(started.error());
  return reactor;
}

EpollReactor::EpollReactor(Descriptor epoll, const ReactorOptions& options)
    : epoll_(std::move(epoll)), network_(epoll_.get(), options, counts_), disk_([this] { waker_.wake(); }) {}

Result<void> EpollReactor::start() {
  if (auto opened = waker_.open(); !opened) return opened;
  epoll_event interest{EPOLLIN, {.u64 = Tag{TagKind::wake}.packed()}};
  if (::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, waker_.descriptor(), &interest) != 0)
    return system_failure("epoll_ctl", "for a reactor's eventfd", errno);
  return network_.start();
}

void EpollReactor::bind_owner() {
  const std::thread::id caller = std::this_thread::get_id();
  if (owner_ == std::thread::id()) owner_ = caller;
  LOCKSTEP_ASSERT(owner_ == caller, "a reactor is turned and waited in by one thread only");
}

int EpollReactor::await(std::int64_t timeout_ns) {
  counts_.enters.add();
  const timespec timeout{timeout_ns / 1'000'000'000, timeout_ns % 1'000'000'000};
  const int room = static_cast<int>(ready_.size());
  int count = ::epoll_pwait2(epoll_.get(), ready_.data(), room, timeout_ns < 0 ? nullptr : &timeout, nullptr);
  if (count < 0 && errno == ENOSYS) {
    // Before Linux 5.11, and in sandboxes: whole milliseconds, rounded up so that a deadline is never woken for early.
    const std::int64_t timeout_ms =
        timeout_ns < 0 ? -1 : std::min<std::int64_t>((timeout_ns + 999'999) / 1'000'000, INT32_MAX);
    count = ::epoll_wait(epoll_.get(), ready_.data(), room, static_cast<int>(timeout_ms));
  }
  LOCKSTEP_ASSERT(count >= 0 || errno == EINTR, "epoll_pwait2 failed on a valid descriptor");
  return std::max(count, 0);
}

int EpollReactor::turn() {
  bind_owner();
  if (ready_count_ == 0) ready_count_ = await(0);
  const int count = std::exchange(ready_count_, 0);
  for (int i = 0; i < count; ++i) {
    const epoll_event& event = ready_[static_cast<std::size_t>(i)];
    const Tag tag = Tag::unpack(event.data.u64);
    if (tag.kind == TagKind::wake) {
      std::uint64_t wakes = 0;
      [[maybe_unused]] const ssize_t got = ::read(waker_.descriptor(), &wakes, sizeof wakes);
    } else {
      network_.on_ready(tag, event.events);
    }
  }
  if (network_.deadline_ns() != INT64_MAX) network_.wake_listeners(SystemClock().steady_ns());
  counts_.completions.add(static_cast<std::uint64_t>(count));
  return count + static_cast<int>(disk_.gather());
}

void EpollReactor::wait(std::int64_t timeout_ns) {
  bind_owner();
  if (ready_count_ > 0 || network_.wants_poll() || disk_.gather() > 0) return;
  if (network_.deadline_ns() != INT64_MAX) {
    const std::int64_t rest_ns = std::max<std::int64_t>(network_.deadline_ns() - SystemClock().steady_ns(), 0);
    timeout_ns = timeout_ns < 0 ? rest_ns : std::min(timeout_ns, rest_ns);
  }
  if (waker_.begin_sleep()) {
    counts_.sleeps.add();
    ready_count_ = await(timeout_ns);
  }
  waker_.end_sleep();
}

ReactorCounters EpollReactor::counters() const {
  ReactorCounters counters = counts_.read();
  counters.wakes = waker_.wakes();
  return counters;
}

}  // namespace lockstep::io
