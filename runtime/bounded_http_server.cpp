// SPDX-License-Identifier: Apache-2.0
#include "runtime/bounded_http_server.hpp"

#include <netdb.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <chrono>
#include <condition_variable>
#include <cstdlib>
#include <deque>
#include <functional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace lockstep {
namespace {

using SteadyClock = std::chrono::steady_clock;

/// Of a connection, for its one request and the answer, however slowly they drip.
constexpr auto exchange_time = std::chrono::seconds(2);
/// Connections served at a time; each has a thread, so that those that send nothing hold nobody up.
constexpr std::size_t most_threads = 64;

/// httplib's own pool starts all its threads at once; this one a thread when a connection finds none at rest.
class GrowingPool final : public httplib::TaskQueue {
 public:
  void enqueue(std::function<void()> task) override {
    const std::lock_guard lock(mutex_);
    tasks_.push_back(std::move(task));
    if (tasks_.size() > resting_ && threads_.size() < most_threads) threads_.emplace_back([this] { work(); });
    changed_.notify_one();
  }
  void shutdown() override {
    {
      const std::lock_guard lock(mutex_);
      stopping_ = true;
    }
    changed_.notify_all();
    for (std::thread& thread : threads_) thread.join();
  }

 private:
  void work() {
    std::unique_lock lock(mutex_);
    for (;;) {
      ++resting_;
      changed_.wait(lock, [this] { return stopping_ || !tasks_.empty(); });
      --resting_;
      if (tasks_.empty()) return;
      const std::function<void()> task = std::move(tasks_.front());
      tasks_.pop_front();
      lock.unlock();
      task();
      lock.lock();
    }
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::function<void()>> tasks_;
  std::vector<std::thread> threads_;
  std::size_t resting_ = 0;
  bool stopping_ = false;
};

/// A connection's bytes, until a deadline or until somebody shuts the socket down.
class Connected final : public httplib::Stream {
 public:
  Connected(socket_t socket, SteadyClock::time_point deadline) : socket_(socket), deadline_(deadline) {}

  bool is_readable() const override { return wait_for(POLLIN); }
  bool is_writable() const override { return wait_for(POLLOUT); }
  ssize_t read(char* into, size_t bytes) override { return is_readable() ? ::recv(socket_, into, bytes, 0) : -1; }
  ssize_t write(const char* from, size_t bytes) override {
    return is_writable() ? ::send(socket_, from, bytes, MSG_NOSIGNAL) : -1;
  }
  void get_remote_ip_and_port(std::string& ip, int& port) const override { address_of(::getpeername, ip, port); }
  void get_local_ip_and_port(std::string& ip, int& port) const override { address_of(::getsockname, ip, port); }
  socket_t socket() const override { return socket_; }

 private:
  bool wait_for(short events) const {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline_ - SteadyClock::now()).count();
    pollfd waited{.fd = socket_, .events = events, .revents = 0};
    return left > 0 && ::poll(&waited, 1, static_cast<int>(left)) == 1 && (waited.revents & events) != 0;
  }
  template <class Get>
  void address_of(Get get, std::string& ip, int& port) const {
    sockaddr_storage at{};
    socklen_t bytes = sizeof at;
    char host[NI_MAXHOST] = {};
    char service[NI_MAXSERV] = {};
    auto* const generic = reinterpret_cast<sockaddr*>(&at);
    if (get(socket_, generic, &bytes) != 0 ||
        ::getnameinfo(generic, bytes, host, sizeof host, service, sizeof service, NI_NUMERICHOST | NI_NUMERICSERV) != 0)
      return;
    ip = host;
    port = std::atoi(service);
  }

  socket_t socket_;
  SteadyClock::time_point deadline_;
};

}  // namespace

BoundedHttpServer::BoundedHttpServer() {
  new_task_queue = [] { return new GrowingPool; };  // httplib owns and deletes it
}

void BoundedHttpServer::stop_now() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
    for (const socket_t socket : open_) ::shutdown(socket, SHUT_RDWR);
  }
  stop();
}

bool BoundedHttpServer::process_and_close_socket(socket_t socket) {
  {
    const std::lock_guard lock(mutex_);
    if (stopping_) ::shutdown(socket, SHUT_RDWR);
    open_.insert(socket);
  }
  Connected stream(socket, SteadyClock::now() + exchange_time);
  bool closed = false;
  const bool good = stream.is_readable() && process_request(stream, true, closed, nullptr);
  const std::lock_guard lock(mutex_);
  open_.erase(socket);
  ::shutdown(socket, SHUT_RDWR);
  ::close(socket);
  return good;
}

}  // namespace lockstep
