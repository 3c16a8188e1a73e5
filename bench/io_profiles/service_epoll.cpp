// SPDX-License-Identifier: Apache-2.0
#include <sys/epoll.h>
#include <sys/socket.h>

#include <array>
#include <cerrno>

#include "base/descriptor.hpp"
#include "bench/io_profiles/service.hpp"

namespace lockstep::bench {
namespace {

constexpr int events_per_wait = 16;
constexpr std::uint32_t interest = EPOLLIN | EPOLLONESHOT | EPOLLET;

/// Whichever worker is free takes what is ready. ONESHOT keeps a connection with the worker that got it until that one
/// arms it again, which also reports bytes that came meanwhile: one receive per event is enough.
class EpollPool final : public Service {
 public:
  explicit EpollPool(ServiceState& state) : state_(state), epoll_(::epoll_create1(EPOLL_CLOEXEC)) {
    if (!epoll_.is_open()) server_failed("epoll_create1", errno);
    for (Connection& connection : state_.connections) control(EPOLL_CTL_ADD, connection);
  }

  void run(std::size_t worker, const std::function<void()>& ready) override {
    WorkerCounts& counts = state_.counts[worker];
    std::array<epoll_event, events_per_wait> events{};
    ready();
    for (;;) {
      const int count = ::epoll_wait(epoll_.get(), events.data(), events_per_wait, -1);
      counts.add_system_calls(1);
      if (count < 0 && errno != EINTR) server_failed("epoll_wait", errno);
      for (int i = 0; i < count; ++i) {
        serve(*static_cast<Connection*>(events[static_cast<std::size_t>(i)].data.ptr), counts);
      }
    }
  }

 private:
  void control(int operation, Connection& connection) {
    epoll_event event{.events = interest, .data = {.ptr = &connection}};
    if (::epoll_ctl(epoll_.get(), operation, connection.fd(), &event) != 0) server_failed("epoll_ctl", errno);
  }

  void serve(Connection& connection, WorkerCounts& counts) {
    const auto room = connection.room();
    const ssize_t received = ::recv(connection.fd(), room.data(), room.size(), MSG_DONTWAIT);
    counts.add_system_calls(1);
    if (received == 0 || (received < 0 && errno == ECONNRESET)) return;  // the client is done: never armed again
    if (received < 0 && errno != EAGAIN) server_failed("recv", errno);
    if (received > 0) {
      counts.add_requests(connection.received(static_cast<std::size_t>(received), state_.plan.work_rounds));
      if (connection.can_send()) send(connection, counts);
    }
    control(EPOLL_CTL_MOD, connection);
    counts.add_system_calls(1);
  }

  static void send(Connection& connection, WorkerCounts& counts) {
    auto left = connection.start_send();
    while (!left.empty()) {
      const ssize_t sent = ::send(connection.fd(), left.data(), left.size(), MSG_NOSIGNAL);
      counts.add_system_calls(1);
      if (sent < 0) return;  // the client is gone
      left = left.subspan(static_cast<std::size_t>(sent));
    }
    connection.sent();
    connection.released();
  }

  ServiceState& state_;
  Descriptor epoll_;
};

}  // namespace

std::unique_ptr<Service> make_epoll_pool(ServiceState& state) {
  return std::make_unique<EpollPool>(state);
}

}  // namespace lockstep::bench
