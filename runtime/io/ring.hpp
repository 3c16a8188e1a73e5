// SPDX-License-Identifier: Apache-2.0
#pragma once

/// Ring: one io_uring, owned by one thread. It asks for SINGLE_ISSUER | DEFER_TASKRUN (completions run only when the
/// owner asks, so no other thread is interrupted) and steps down a ladder of setup flags where the kernel refuses.
///
/// It may be made and filled in one thread and used in another: the ring is born disabled, and bind_to_this_thread()
/// enables it for the caller, after which an entry from any other thread is refused by the kernel with EEXIST.
///
/// Opened by open_polled(), a kernel thread takes its submissions instead (SQPOLL). That thread spins, so it wants a
/// core of its own: where it takes turns with the owner, each waits for whole scheduler slices of the other.
///
/// Submissions never fail for want of room: a full queue is flushed, and what the kernel does not take yet waits in
/// order in a list of its own. Completions are copied out in batches before they are dispatched, so a handler may
/// queue submissions freely; it must not call reap() again.
/// Source: io_uring_setup_flags(7).

#include <liburing.h>

#include <array>
#include <cstdint>
#include <deque>
#include <span>
#include <string>
#include <thread>

#include "base/error.hpp"
#include "runtime/io/tag.hpp"
#include "runtime/metrics.hpp"

namespace lockstep::io {

/// The setup flags to try, best first.
[[nodiscard]] std::span<const unsigned> setup_ladder();
/// "SINGLE_ISSUER|DEFER_TASKRUN|...".
[[nodiscard]] std::string setup_flags_text(unsigned flags);

struct RingCompletion {
  Tag tag;
  std::int32_t result = 0;
  std::uint32_t flags = 0;  ///< IORING_CQE_F_*
};

class Ring {
 public:
  Ring() = default;
  ~Ring() { close(); }
  Ring(const Ring&) = delete;
  Ring& operator=(const Ring&) = delete;

  /// 0 or -errno; of a ladder all of whose steps fail, the last step's. Short of lockable memory, smaller queues than
  /// asked for.
  [[nodiscard]] int open(std::uint32_t submission_entries, std::uint32_t completion_entries);
  /// As open(), with a kernel thread on `cpu` that looks for submissions without being told, and sleeps when there were
  /// none for `idle_ms` (at least 1: to the kernel 0 means a second).
  [[nodiscard]] int open_polled(std::uint32_t submission_entries, std::uint32_t completion_entries, unsigned cpu,
                                unsigned idle_ms);
  /// Enables the ring for the calling thread and registers its descriptor there. 0 or -errno.
  [[nodiscard]] int bind_to_this_thread();
  /// Cancels what is in flight. Memory given to the kernel must outlive this call. From the owner, or after its end.
  void close();

  [[nodiscard]] io_uring* native() { return &ring_; }
  [[nodiscard]] unsigned setup_flags() const { return setup_flags_; }
  [[nodiscard]] unsigned features() const { return ring_.features; }
  [[nodiscard]] unsigned completion_entries() const { return completion_entries_; }

  /// Queues one submission: `prepare(io_uring_sqe*)` fills it, the tag is set behind.
  template <class Prepare>
  void queue(Tag tag, Prepare&& prepare) {
    io_uring_sqe* entry = next_entry();
    prepare(entry);
    io_uring_sqe_set_data64(entry, tag.packed());
  }

  /// Submits what is queued and lets deferred completions run. No system call when there is neither. Never blocks.
  void submit_and_gather();
  /// Submits what is queued and sleeps until there is a completion or `timeout_ns` is over (< 0: no limit).
  void submit_and_sleep(std::int64_t timeout_ns);

  /// Completions lie in the queue, or would after submit_and_gather().
  [[nodiscard]] bool has_completions() const;

  /// Dispatches the completions that lie in the queue as `sink(const RingCompletion&)`; returns how many.
  template <class Sink>
  int reap(Sink&& sink) {
    int total = 0;
    for (;;) {
      std::array<RingCompletion, 256> batch;
      const unsigned count = take(batch);
      for (unsigned i = 0; i < count; ++i) sink(batch[i]);
      total += static_cast<int>(count);
      if (count < batch.size()) return total;
    }
  }

  /// Any thread. Calls that submitted, gathered or slept; of a polled ring few of them are system calls.
  [[nodiscard]] std::uint64_t enters() const { return enters_.value(); }
  /// Any thread. Times the queue was found overflown: the kernel then keeps completions aside and ends multishot
  /// requests.
  [[nodiscard]] std::uint64_t overflows() const { return overflows_.value(); }

 private:
  int open_with(const io_uring_params& params, std::span<const unsigned> steps, std::uint32_t submission_entries,
                std::uint32_t completion_entries);
  int climb_down(const io_uring_params& wanted, std::span<const unsigned> steps, std::uint32_t submission_entries,
                 std::uint32_t completion_entries);
  io_uring_sqe* next_entry();
  void submit();
  void move_waiting();
  void check(const char* operation, int result);
  unsigned take(std::span<RingCompletion> batch);
  [[nodiscard]] unsigned kernel_flags() const;

  io_uring ring_{};
  bool open_ = false;
  bool bound_ = false;
  unsigned setup_flags_ = 0;
  unsigned completion_entries_ = 0;
  std::deque<io_uring_sqe> waiting_;  ///< behind everything in the submission queue
  Counter enters_;
  Counter overflows_;
  std::thread::id owner_;
};

}  // namespace lockstep::io
