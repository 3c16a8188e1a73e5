// SPDX-License-Identifier: Apache-2.0
#include <liburing.h>
#include <sys/mman.h>
#include <sys/socket.h>

#include <cerrno>
#include <cstdlib>

#include "bench/io_profiles/service.hpp"

namespace lockstep::bench {
namespace {

constexpr unsigned submissions = 1024;
constexpr unsigned completions = 8192;
constexpr unsigned submitter_idle_ms = 1000;
constexpr std::uint64_t send_mark = 1;  // user_data: twice the connection's index, and this for a send

/// Buffers the kernel chooses from for what it receives (a provided buffer ring), given back one by one and published
/// together.
class ProvidedBuffers {
 public:
  static constexpr unsigned count = 512;
  static constexpr std::size_t bytes = 2048;

  void open(io_uring& ring) {
    constexpr std::size_t ring_bytes = count * sizeof(io_uring_buf);
    void* memory = ::mmap(nullptr, ring_bytes + count * bytes, PROT_READ | PROT_WRITE,
                          MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
    if (memory == MAP_FAILED) server_failed("mmap", errno);
    entries_ = static_cast<io_uring_buf_ring*>(memory);
    data_ = static_cast<std::byte*>(memory) + ring_bytes;
    io_uring_buf_reg registration{};
    registration.ring_addr = reinterpret_cast<std::uintptr_t>(memory);
    registration.ring_entries = count;
    if (const int result = io_uring_register_buf_ring(&ring, &registration, 0); result != 0)
      server_failed("io_uring_register_buf_ring", -result);
    io_uring_buf_ring_init(entries_);
    for (unsigned i = 0; i < count; ++i) give_back(i);
    publish();
  }

  [[nodiscard]] std::span<const std::byte> buffer(unsigned index, std::size_t length) const {
    return {data_ + index * bytes, length};
  }
  void give_back(unsigned index) {
    io_uring_buf_ring_add(entries_, data_ + index * bytes, static_cast<unsigned>(bytes),
                          static_cast<unsigned short>(index), io_uring_buf_ring_mask(count), given_back_++);
  }
  void publish() {
    io_uring_buf_ring_advance(entries_, given_back_);
    given_back_ = 0;
  }

 private:
  io_uring_buf_ring* entries_ = nullptr;
  std::byte* data_ = nullptr;
  int given_back_ = 0;
};

/// A worker's ring: multishot receives into provided buffers, one send of a connection at a time.
class WorkerRing {
 public:
  WorkerRing(ServiceState& state, WorkerCounts& counts)
      : state_(state),
        counts_(counts),
        zero_copy_(state.plan.profile == Profile::send_zc),
        polled_(state.plan.profile == Profile::sqpoll) {}

  /// `shared_submitter` is the descriptor of the ring whose SQPOLL thread this one uses too, or -1.
  void open(unsigned flags, int shared_submitter) {
    io_uring_params params{};
    params.flags = flags | IORING_SETUP_CQSIZE | IORING_SETUP_SUBMIT_ALL;
    params.cq_entries = completions;
    if (polled_) {
      params.sq_thread_idle = submitter_idle_ms;
      if (state_.plan.submitter_cpu >= 0) {
        params.flags |= IORING_SETUP_SQ_AFF;
        params.sq_thread_cpu = static_cast<unsigned>(state_.plan.submitter_cpu);
      }
      if (shared_submitter >= 0) {
        params.flags |= IORING_SETUP_ATTACH_WQ;
        params.wq_fd = static_cast<unsigned>(shared_submitter);
      }
    }
    if (const int result = io_uring_queue_init_params(submissions, &ring_, &params); result != 0)
      server_failed("io_uring_setup", -result);
    static_cast<void>(io_uring_register_ring_fd(&ring_));  // spares a look-up a call; nothing depends on it
    buffers_.open(ring_);
    if (!zero_copy_) return;
    const iovec memory{state_.memory, state_.memory_bytes()};
    if (const int result = io_uring_register_buffers(&ring_, &memory, 1); result != 0)
      server_failed("io_uring_register_buffers", -result);
  }

  [[nodiscard]] int descriptor() const { return ring_.ring_fd; }

  void arm(std::size_t index) {
    io_uring_sqe* entry = next_entry();
    io_uring_prep_recv_multishot(entry, state_.connections[index].fd(), nullptr, 0, 0);
    entry->flags |= IOSQE_BUFFER_SELECT;
    entry->user_data = 2 * index;
  }

  void turn() {
    submit_and_wait();
    unsigned head = 0;
    unsigned count = 0;
    io_uring_cqe* entry = nullptr;
    io_uring_for_each_cqe(&ring_, head, entry) {
      ++count;
      const std::size_t index = entry->user_data / 2;
      if ((entry->user_data & send_mark) != 0)
        on_sent(index, *entry);
      else
        on_received(index, *entry);
    }
    io_uring_cq_advance(&ring_, count);
    buffers_.publish();
  }

 private:
  void submit_and_wait() {
    int result = 0;
    if (!polled_) {
      result = io_uring_submit_and_wait(&ring_, 1);
      counts_.add_system_calls(1);
    } else {
      // The kernel's thread sees what is queued; it is called only when it has gone to sleep.
      const unsigned flags = __atomic_load_n(ring_.sq.kflags, __ATOMIC_ACQUIRE);
      if ((flags & IORING_SQ_NEED_WAKEUP) != 0) counts_.add_system_calls(1);
      result = io_uring_submit(&ring_);
      if (result >= 0 && io_uring_cq_ready(&ring_) == 0) {
        io_uring_cqe* first = nullptr;
        result = io_uring_wait_cqe(&ring_, &first);
        counts_.add_system_calls(1);
      }
    }
    if (result < 0 && result != -EINTR) server_failed("io_uring_enter", -result);
  }

  void on_received(std::size_t index, const io_uring_cqe& entry) {
    Connection& connection = state_.connections[index];
    if (entry.res > 0) {
      const unsigned buffer = entry.flags >> IORING_CQE_BUFFER_SHIFT;
      counts_.add_requests(
          connection.take(buffers_.buffer(buffer, static_cast<std::size_t>(entry.res)), state_.plan.work_rounds));
      buffers_.give_back(buffer);
      if (connection.can_send()) send(index);
    }
    // It ends when buffers run out or the completion queue is full, too, whatever its result.
    const bool goes_on = (entry.flags & IORING_CQE_F_MORE) != 0;
    if (!goes_on && (entry.res > 0 || entry.res == -ENOBUFS)) arm(index);
  }

  /// SEND_ZC completes twice: when the bytes are queued, and, with the notification, when their memory is ours again.
  void on_sent(std::size_t index, const io_uring_cqe& entry) {
    Connection& connection = state_.connections[index];
    const bool notification = (entry.flags & IORING_CQE_F_NOTIF) != 0;
    const bool another_follows = (entry.flags & IORING_CQE_F_MORE) != 0;
    if (!notification && entry.res <= 0) return;  // the client is gone
    if (!notification) connection.sent();
    if (!another_follows) connection.released();
    if (connection.can_send()) send(index);
  }

  void send(std::size_t index) {
    Connection& connection = state_.connections[index];
    const auto replies = connection.start_send();
    constexpr int flags = MSG_WAITALL | MSG_NOSIGNAL;
    io_uring_sqe* entry = next_entry();
    if (zero_copy_)
      io_uring_prep_send_zc_fixed(entry, connection.fd(), replies.data(), replies.size(), flags, 0, 0);
    else
      io_uring_prep_send(entry, connection.fd(), replies.data(), replies.size(), flags);
    entry->user_data = 2 * index + send_mark;
  }

  io_uring_sqe* next_entry() {
    io_uring_sqe* entry = io_uring_get_sqe(&ring_);
    // With SQPOLL the kernel's thread may not have taken yet what was submitted.
    while (entry == nullptr) {
      if (const int result = polled_ ? io_uring_sqring_wait(&ring_) : io_uring_submit(&ring_); result < 0)
        server_failed("io_uring_submit", -result);
      entry = io_uring_get_sqe(&ring_);
    }
    return entry;
  }

  ServiceState& state_;
  WorkerCounts& counts_;
  const bool zero_copy_;
  const bool polled_;
  io_uring ring_{};
  ProvidedBuffers buffers_;
};

unsigned setup_flags(Profile profile) {
  switch (profile) {
    case Profile::deferred:
    case Profile::send_zc:
      return IORING_SETUP_SINGLE_ISSUER | IORING_SETUP_DEFER_TASKRUN;
    case Profile::sqpoll:
      return IORING_SETUP_SINGLE_ISSUER | IORING_SETUP_SQPOLL;
    default:
      return IORING_SETUP_SINGLE_ISSUER;
  }
}

/// Every n-th connection belongs to the same worker, from the first to the last byte.
class OwnRings final : public Service {
 public:
  explicit OwnRings(ServiceState& state) : state_(state) {}

  void run(std::size_t worker, const std::function<void()>& ready) override {
    WorkerRing ring(state_, state_.counts[worker]);
    ring.open(setup_flags(state_.plan.profile), first_ring_);
    if (worker == 0) first_ring_ = ring.descriptor();
    for (std::size_t i = worker; i < state_.connections.size(); i += state_.plan.workers) ring.arm(i);
    ready();
    for (;;) ring.turn();
  }

 private:
  ServiceState& state_;
  int first_ring_ = -1;  // written before the second worker starts
};

}  // namespace

std::unique_ptr<Service> make_own_rings(ServiceState& state) {
  return std::make_unique<OwnRings>(state);
}

}  // namespace lockstep::bench
