// SPDX-License-Identifier: Apache-2.0
#include "runtime/io/ring.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>

#include "base/assert.hpp"
#include "base/log.hpp"
#include "base/system_error.hpp"
#include "runtime/io/uring_abi.hpp"

namespace lockstep::io {
namespace {

constexpr unsigned common_flags = IORING_SETUP_CQSIZE | IORING_SETUP_CLAMP;

// COOP_TASKRUN stands in for DEFER_TASKRUN on Linux 5.19 and 6.0: it too spares the interrupts, and with TASKRUN_FLAG
// the owner sees that it has to enter.
constexpr unsigned ladder[] = {
    IORING_SETUP_SINGLE_ISSUER | IORING_SETUP_DEFER_TASKRUN | IORING_SETUP_TASKRUN_FLAG | IORING_SETUP_SUBMIT_ALL |
        IORING_SETUP_R_DISABLED | common_flags,
    IORING_SETUP_SINGLE_ISSUER | IORING_SETUP_COOP_TASKRUN | IORING_SETUP_TASKRUN_FLAG | IORING_SETUP_SUBMIT_ALL |
        IORING_SETUP_R_DISABLED | common_flags,
    IORING_SETUP_COOP_TASKRUN | IORING_SETUP_TASKRUN_FLAG | IORING_SETUP_SUBMIT_ALL | common_flags,
    common_flags,
};

// The kernel's polling thread runs completions too, so neither DEFER_TASKRUN nor COOP_TASKRUN goes with it.
constexpr unsigned polled_ladder[] = {
    IORING_SETUP_SQPOLL | IORING_SETUP_SQ_AFF | IORING_SETUP_SINGLE_ISSUER | IORING_SETUP_SUBMIT_ALL |
        IORING_SETUP_R_DISABLED | common_flags,
    IORING_SETUP_SQPOLL | IORING_SETUP_SQ_AFF | common_flags,
};

constexpr std::uint32_t smallest_submission_queue = 64;

struct FlagName {
  unsigned flag;
  const char* name;
};
constexpr FlagName flag_names[] = {
    {IORING_SETUP_SQPOLL, "SQPOLL"},
    {IORING_SETUP_SQ_AFF, "SQ_AFF"},
    {IORING_SETUP_SINGLE_ISSUER, "SINGLE_ISSUER"},
    {IORING_SETUP_DEFER_TASKRUN, "DEFER_TASKRUN"},
    {IORING_SETUP_COOP_TASKRUN, "COOP_TASKRUN"},
    {IORING_SETUP_TASKRUN_FLAG, "TASKRUN_FLAG"},
    {IORING_SETUP_SUBMIT_ALL, "SUBMIT_ALL"},
    {IORING_SETUP_R_DISABLED, "R_DISABLED"},
    {IORING_SETUP_CQSIZE, "CQSIZE"},
    {IORING_SETUP_CLAMP, "CLAMP"},
};

constexpr unsigned wants_enter = IORING_SQ_CQ_OVERFLOW | IORING_SQ_TASKRUN;

}  // namespace

std::span<const unsigned> setup_ladder() {
  return ladder;
}

std::string setup_flags_text(unsigned flags) {
  std::string text;
  for (const FlagName& known : flag_names) {
    if ((flags & known.flag) == 0) continue;
    if (!text.empty()) text += '|';
    text += known.name;
  }
  return text;
}

int Ring::open(std::uint32_t submission_entries, std::uint32_t completion_entries) {
  return open_with({}, ladder, submission_entries, completion_entries);
}

int Ring::open_polled(std::uint32_t submission_entries, std::uint32_t completion_entries, unsigned cpu,
                      unsigned idle_ms) {
  io_uring_params params{};
  params.sq_thread_cpu = cpu;
  params.sq_thread_idle = idle_ms;
  return open_with(params, polled_ladder, submission_entries, completion_entries);
}

int Ring::open_with(const io_uring_params& params, std::span<const unsigned> steps, std::uint32_t submission_entries,
                    std::uint32_t completion_entries) {
  LOCKSTEP_ASSERT(!open_, "a ring is opened once");
  std::uint32_t submissions = submission_entries, completions = completion_entries;
  int result = climb_down(params, steps, submissions, completions);
  // The queues count against the user's lockable memory (64 KiB in some containers). Small ones work too: what does not
  // fit in them waits, in the kernel or here.
  while (result == -ENOMEM && submissions > smallest_submission_queue) {
    submissions /= 2;
    completions = std::max(completions / 2, submissions);
    result = climb_down(params, steps, submissions, completions);
  }
  if (result == 0 && submissions != submission_entries) {
    log(LogLevel::warning, "io",
        "io_uring queues cut to {} submissions and {} completions: little lockable memory; "
        "raise ulimit -l to 8192",
        submissions, completions);
  }
  return result;
}

int Ring::climb_down(const io_uring_params& wanted, std::span<const unsigned> steps, std::uint32_t submission_entries,
                     std::uint32_t completion_entries) {
  int result = -EINVAL;
  for (const unsigned flags : steps) {
    io_uring_params params = wanted;
    params.flags = flags;
    params.cq_entries = completion_entries;
    result = io_uring_queue_init_params(submission_entries, &ring_, &params);
    if (result == 0) {
      open_ = true;
      setup_flags_ = flags;
      completion_entries_ = params.cq_entries;
      return 0;
    }
    // Only "I do not know this flag" is a reason to try fewer.
    if (result != -EINVAL) break;
  }
  return result;
}

int Ring::bind_to_this_thread() {
  if ((setup_flags_ & IORING_SETUP_R_DISABLED) != 0) {
    if (const int result = abi::enable_rings(ring_); result != 0) return result;
  }
  // Spares a descriptor look-up per system call. Old kernels lack it, and nothing depends on it.
  [[maybe_unused]] const int registered = io_uring_register_ring_fd(&ring_);
  owner_ = std::this_thread::get_id();
  bound_ = true;
  return 0;
}

void Ring::close() {
  if (!open_) return;
  if (bound_ && owner_ != std::this_thread::get_id()) abi::forget_registered_descriptor(ring_);
  io_uring_queue_exit(&ring_);
  open_ = false;
  bound_ = false;
}

unsigned Ring::kernel_flags() const {
  // Pairs with the kernel's store of the flags before it returns from, or wakes, an enter of this thread.
  return __atomic_load_n(ring_.sq.kflags, __ATOMIC_RELAXED);
}

bool Ring::has_completions() const {
  return io_uring_cq_ready(&ring_) != 0 || (kernel_flags() & wants_enter) != 0;
}

io_uring_sqe* Ring::next_entry() {
  if (waiting_.empty()) {
    if (io_uring_sqe* entry = io_uring_get_sqe(&ring_)) return entry;
    if (bound_) {
      submit();
      if (io_uring_sqe* entry = io_uring_get_sqe(&ring_)) return entry;
    }
  }
  return &waiting_.emplace_back();
}

void Ring::move_waiting() {
  while (!waiting_.empty()) {
    io_uring_sqe* entry = io_uring_get_sqe(&ring_);
    if (entry == nullptr) return;
    *entry = waiting_.front();
    waiting_.pop_front();
  }
}

void Ring::check(const char* operation, int result) {
  enters_.add();
  // EBUSY and EAGAIN: the kernel is short of room or memory for now; what is queued stays queued.
  if (result >= 0 || result == -EINTR || result == -ETIME || result == -EAGAIN || result == -EBUSY) return;
  log(LogLevel::error, "io", "{}", system_error(operation, "on a ring", -result).message);
  LOCKSTEP_ASSERT(false,
                  "io_uring_enter failed: a lost completion, or a ring entered by a thread that does not own it");
}

void Ring::submit() {
  check("io_uring_submit", io_uring_submit(&ring_));
}

void Ring::submit_and_gather() {
  move_waiting();
  const unsigned flags = kernel_flags();
  if ((flags & IORING_SQ_CQ_OVERFLOW) != 0) overflows_.add();
  const bool polled = (setup_flags_ & IORING_SETUP_SQPOLL) != 0;
  if (polled) submit();  // a system call only where the polling thread sleeps
  if (!polled && io_uring_sq_ready(&ring_) != 0) {
    check("io_uring_submit_and_get_events", io_uring_submit_and_get_events(&ring_));
    // More than the queue holds: the rest goes now, or waits for the next turn when the kernel takes nothing.
    for (std::size_t before = 0; !waiting_.empty() && waiting_.size() != before;) {
      before = waiting_.size();
      move_waiting();
      submit();
    }
  } else if ((flags & wants_enter) != 0) {
    check("io_uring_get_events", io_uring_get_events(&ring_));
  }
}

void Ring::submit_and_sleep(std::int64_t timeout_ns) {
  move_waiting();
  __kernel_timespec timeout{timeout_ns / 1'000'000'000, timeout_ns % 1'000'000'000};
  io_uring_cqe* first = nullptr;
  // With entries still waiting for room, sleeping would leave them unsubmitted.
  if (!waiting_.empty()) timeout = {};
  __kernel_timespec* limit = timeout_ns < 0 && waiting_.empty() ? nullptr : &timeout;
  check("io_uring_submit_and_wait_timeout", io_uring_submit_and_wait_timeout(&ring_, &first, 1, limit, nullptr));
}

unsigned Ring::take(std::span<RingCompletion> batch) {
  const unsigned head = *ring_.cq.khead;
  const unsigned count = std::min(io_uring_cq_ready(&ring_), static_cast<unsigned>(batch.size()));
  for (unsigned i = 0; i < count; ++i) {
    const io_uring_cqe& entry = ring_.cq.cqes[(head + i) & (completion_entries_ - 1)];
    batch[i] = {Tag::unpack(entry.user_data), entry.res, entry.flags};
  }
  io_uring_cq_advance(&ring_, count);
  return count;
}

}  // namespace lockstep::io
