// SPDX-License-Identifier: Apache-2.0
#include "runtime/io/uring_reactor.hpp"

#include <algorithm>

#include "base/assert.hpp"
#include "base/clock.hpp"
#include "base/system_error.hpp"
#include "runtime/io/io_caps.hpp"

namespace lockstep::io {
namespace {

// The kernel runs at most 20 deferred items per enter (since Linux 6.13). A turn goes on while its rounds come that
// full, but not for ever; an enter for the odd late completion would cost more than it brings.
constexpr int rounds_per_turn = 16;
constexpr int full_round = 16;

}  // namespace

Result<std::unique_ptr<Reactor>> UringReactor::make(const ReactorOptions& options) {
  auto reactor = std::make_unique<UringReactor>(options);
  if (auto started = reactor->start(options); !started) return std::unexpected(started.error());
  return reactor;
}

UringReactor::UringReactor(const ReactorOptions& options)
    : network_(ring_, options, counts_), disk_(ring_, [this] { waker_.wake(); }) {}

UringReactor::~UringReactor() {
  // The kernel finishes a thread's requests when the thread ends; while it lives, only it may wait for them.
  while (owner_ == std::this_thread::get_id() && disk_.in_flight() > 0) {
    ring_.submit_and_sleep(-1);
    ring_.reap([this](const RingCompletion& completion) { dispatch(completion); });
  }
  ring_.close();
}

Result<void> UringReactor::start(const ReactorOptions& options) {
  if (auto opened = waker_.open(); !opened) return opened;
  const int result = ring_.open(options.submission_entries, options.completion_entries);
  if (result != 0) return std::unexpected(ring_unavailable(-result));
  return network_.start();
}

void UringReactor::bind_owner() {
  const std::thread::id caller = std::this_thread::get_id();
  if (owner_ == caller) return;
  LOCKSTEP_ASSERT(owner_ == std::thread::id(), "a reactor is turned and waited in by one thread only");
  LOCKSTEP_ASSERT(ring_.bind_to_this_thread() == 0, "a ring that was set up could not be enabled");
  owner_ = caller;
  arm_wake();
}

void UringReactor::arm_wake() {
  ring_.queue({.kind = TagKind::wake}, [this](io_uring_sqe* entry) {
    io_uring_prep_read(entry, waker_.descriptor(), &wake_count_, sizeof wake_count_, 0);
  });
}

void UringReactor::dispatch(const RingCompletion& completion) {
  switch (completion.tag.kind) {
    case TagKind::ignored:
      return;
    case TagKind::wake:
      return arm_wake();
    case TagKind::write:
    case TagKind::sync:
      return disk_.on_completion(completion);
    default:
      return network_.on_completion(completion);
  }
}

int UringReactor::turn() {
  bind_owner();
  int seen = 0;
  for (int round = 0; round < rounds_per_turn; ++round) {
    network_.prepare();
    ring_.submit_and_gather();
    const int reaped = ring_.reap([this](const RingCompletion& completion) { dispatch(completion); });
    seen += reaped;
    if (reaped < full_round || !ring_.has_completions()) break;
  }
  counts_.completions.add(static_cast<std::uint64_t>(seen));
  return seen + static_cast<int>(disk_.gather());
}

void UringReactor::wait(std::int64_t timeout_ns) {
  bind_owner();
  if (network_.wants_poll() || disk_.gather() > 0 || ring_.has_completions()) return;
  network_.prepare();
  if (network_.deadline_ns() != INT64_MAX) {
    const std::int64_t rest_ns = std::max<std::int64_t>(network_.deadline_ns() - SystemClock().steady_ns(), 0);
    timeout_ns = timeout_ns < 0 ? rest_ns : std::min(timeout_ns, rest_ns);
  }
  if (waker_.begin_sleep()) {
    counts_.sleeps.add();
    ring_.submit_and_sleep(timeout_ns);
  }
  waker_.end_sleep();
}

ReactorCounters UringReactor::counters() const {
  ReactorCounters counters = counts_.read();
  counters.enters = ring_.enters();
  counters.queue_overflows = ring_.overflows();
  counters.wakes = waker_.wakes();
  return counters;
}

}  // namespace lockstep::io
