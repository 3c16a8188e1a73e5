// SPDX-License-Identifier: Apache-2.0
#include <liburing.h>
#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <mutex>
#include <span>

#include "bench/io_profiles/service.hpp"

namespace lockstep::bench {
namespace {

constexpr unsigned submissions = 1024;
constexpr unsigned completions = 8192;

/// A ring that all workers use: one lock to prepare and submit, one to wait and take completions. A connection has one
/// receive at a time, linked behind the send of the replies before it, so only one worker has to do with it at a time
/// and the work on its requests is done without a lock.
class SharedRing final : public Service {
 public:
  explicit SharedRing(ServiceState& state) : state_(state) {
    io_uring_params params{};
    params.flags = IORING_SETUP_CQSIZE;
    params.cq_entries = completions;
    if (const int result = io_uring_queue_init_params(submissions, &ring_, &params); result != 0)
      server_failed("io_uring_setup", -result);
    for (std::size_t i = 0; i < state_.connections.size(); ++i) queue_receive(i);
    submit();
  }

  void run(std::size_t worker, const std::function<void()>& ready) override {
    WorkerCounts& counts = state_.counts[worker];
    std::array<Completion, 16> batch{};
    std::array<std::size_t, 16> served{};
    ready();
    for (;;) {
      const std::size_t taken = take(batch, counts);
      std::size_t count = 0;
      for (const Completion& completion : std::span(batch).first(taken)) {
        if (serve(completion, counts)) served[count++] = completion.connection;
      }
      if (count == 0) continue;
      const std::lock_guard lock(submitting_);
      for (const std::size_t connection : std::span(served).first(count)) go_on(connection);
      submit();
      counts.add_system_calls(1);
    }
  }

 private:
  struct Completion {
    std::size_t connection = 0;
    int result = 0;
  };

  std::size_t take(std::span<Completion> batch, WorkerCounts& counts) {
    const std::lock_guard lock(completing_);
    io_uring_cqe* first = nullptr;
    if (io_uring_cq_ready(&ring_) == 0) {
      const int result = io_uring_wait_cqe(&ring_, &first);
      counts.add_system_calls(1);
      if (result == -EINTR) return 0;
      if (result != 0) server_failed("io_uring_enter", -result);
    }
    std::array<io_uring_cqe*, 16> entries{};
    const unsigned count = io_uring_peek_batch_cqe(&ring_, entries.data(), static_cast<unsigned>(batch.size()));
    for (unsigned i = 0; i < count; ++i) batch[i] = {entries[i]->user_data, entries[i]->res};
    io_uring_cq_advance(&ring_, count);
    return count;
  }

  /// False when the connection is over: closed, or its send failed, which leaves the linked receive cancelled.
  bool serve(const Completion& completion, WorkerCounts& counts) {
    if (completion.result <= 0) return false;
    Connection& connection = state_.connections[completion.connection];
    if (connection.is_sending()) {  // the link: this receive began when that send was done
      connection.sent();
      connection.released();
    }
    counts.add_requests(connection.received(static_cast<std::size_t>(completion.result), state_.plan.work_rounds));
    return true;
  }

  void go_on(std::size_t index) {
    Connection& connection = state_.connections[index];
    if (connection.can_send()) {
      const auto replies = connection.start_send();
      io_uring_sqe* entry = next_entry();
      io_uring_prep_send(entry, connection.fd(), replies.data(), replies.size(), MSG_WAITALL | MSG_NOSIGNAL);
      entry->flags |= IOSQE_IO_LINK | IOSQE_CQE_SKIP_SUCCESS;
      entry->user_data = index;
    }
    queue_receive(index);
  }

  void queue_receive(std::size_t index) {
    Connection& connection = state_.connections[index];
    io_uring_sqe* entry = next_entry();
    io_uring_prep_recv(entry, connection.fd(), connection.room().data(), connection.room().size(), 0);
    entry->user_data = index;
  }

  io_uring_sqe* next_entry() {
    io_uring_sqe* entry = io_uring_get_sqe(&ring_);
    LOCKSTEP_ASSERT(entry != nullptr, "more is submitted at once than the queue holds");
    return entry;
  }

  void submit() {
    if (const int result = io_uring_submit(&ring_); result < 0) server_failed("io_uring_submit", -result);
  }

  ServiceState& state_;
  io_uring ring_{};
  std::mutex submitting_;
  std::mutex completing_;
};

}  // namespace

std::unique_ptr<Service> make_shared_ring(ServiceState& state) {
  return std::make_unique<SharedRing>(state);
}

}  // namespace lockstep::bench
