// SPDX-License-Identifier: Apache-2.0
#include "runtime/admin_server.hpp"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <httplib.h>
#include <netdb.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <charconv>
#include <chrono>
#include <condition_variable>
#include <cstdlib>
#include <deque>
#include <mutex>
#include <set>
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

/// httplib's own waits for a silent connection until its time is up, and its stop() for that: 5 s in which a node would
/// not end. This one shuts the connections down, and keeps none open behind its answer.
class HttpServer final : public httplib::Server {
 public:
  void stop_now() {
    {
      const std::lock_guard lock(mutex_);
      stopping_ = true;
      for (const socket_t socket : open_) ::shutdown(socket, SHUT_RDWR);
    }
    stop();
  }

 private:
  bool process_and_close_socket(socket_t socket) override {
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

  std::mutex mutex_;
  std::set<socket_t> open_;  ///< being served
  bool stopping_ = false;
};

}  // namespace

struct AdminServer::Server {
  HttpServer http;
  std::thread thread;
};

AdminServer::AdminServer() : server_(std::make_unique<Server>()) {}

Result<std::unique_ptr<AdminServer>> AdminServer::start(const io::Endpoint& at, AdminHandlers handlers) {
  std::unique_ptr<AdminServer> admin(new AdminServer);
  HttpServer& http = admin->server_->http;
  http.new_task_queue = [] { return new GrowingPool; };  // httplib owns and deletes it
  http.set_payload_max_length(4096);
  // httplib's default adds SO_REUSEPORT, by which two nodes would silently share one admin address.
  http.set_socket_options([](socket_t socket) {
    const int yes = 1;
    setsockopt(socket, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
  });
  const auto serve = [&http](const char* path, const char* type, std::function<std::string()> body) {
    http.Get(path, [type, body = std::move(body)](const httplib::Request&, httplib::Response& response) {
      response.set_content(body(), type);
    });
  };
  serve("/metrics", "text/plain; version=0.0.4", std::move(handlers.metrics));
  serve("/status", "application/json", std::move(handlers.status));
  serve("/hash", "application/json", std::move(handlers.hash));
  serve("/snapshot", "application/json", [snapshot = handlers.snapshot] { return snapshot(false); });
  http.Post("/snapshot",
            [snapshot = std::move(handlers.snapshot)](const httplib::Request&, httplib::Response& response) {
              response.set_content(snapshot(true), "application/json");
            });

  int port = at.port;
  if (port == 0) {
    port = http.bind_to_any_port(at.host);
  } else if (!http.bind_to_port(at.host, port)) {
    port = -1;
  }
  if (port < 0)
    return fail(ErrorCode::busy, fmt::format("admin: cannot listen on {}: the address is in use or not this host's; "
                                             "choose another with --admin HOST:PORT",
                                             at.text()));
  admin->endpoint_ = {at.host, static_cast<std::uint16_t>(port)};
  admin->server_->thread = std::thread([&http] { http.listen_after_bind(); });
  while (!http.is_running()) std::this_thread::yield();  // stop() is lost on a server that does not run yet
  return admin;
}

AdminServer::~AdminServer() {
  server_->http.stop_now();
  if (server_->thread.joinable()) server_->thread.join();
}

namespace {

template <class Ask>
Result<std::string> ask_admin(const io::Endpoint& at, const std::string& path, int timeout_ms, Ask ask) {
  httplib::Client client(at.host, at.port);
  client.set_connection_timeout(std::chrono::milliseconds(timeout_ms));
  client.set_read_timeout(std::chrono::milliseconds(timeout_ms));
  const httplib::Result reply = ask(client);
  const auto refuse = [&](const std::string& what) {
    return fail(ErrorCode::incomplete, fmt::format("{}: {}", at.text(), what));
  };
  if (reply.error() == httplib::Error::Connection || reply.error() == httplib::Error::ConnectionTimeout)
    return refuse("no connection; is a node running there, and is this its admin address?");
  if (!reply)
    return refuse(fmt::format("no page {} within {} ms ({}); is this its admin address?", path, timeout_ms,
                              httplib::to_string(reply.error())));
  if (reply->status != 200)
    return refuse(fmt::format("{}: HTTP status {}; is this a lockstep admin address?", path, reply->status));
  return reply->body;
}

}  // namespace

Result<std::string> admin_get(const io::Endpoint& at, const std::string& path, int timeout_ms) {
  return ask_admin(at, path, timeout_ms, [&](httplib::Client& client) { return client.Get(path); });
}

Result<std::string> admin_post(const io::Endpoint& at, const std::string& path, int timeout_ms) {
  return ask_admin(at, path, timeout_ms, [&](httplib::Client& client) { return client.Post(path); });
}

Result<io::Endpoint> parse_endpoint(const std::string& text) {
  const auto colon = text.rfind(':');
  const auto refuse = [&] {
    return fail(ErrorCode::usage, fmt::format("'{}' is not an address; write HOST:PORT, as in 127.0.0.1:7070", text));
  };
  if (colon == std::string::npos) return refuse();
  const auto digits = text.substr(colon + 1);
  std::uint16_t port = 0;
  const char* const end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data() + colon + 1, end, port);
  if (error == std::errc::result_out_of_range && digits.find_first_not_of("0123456789") == std::string::npos)
    return fail(ErrorCode::usage,
                fmt::format("'{}': the port must be 0..65535; write HOST:PORT, as in 127.0.0.1:7070", text));
  if (error != std::errc{} || rest != end || colon + 1 == text.size()) return refuse();
  std::string host = text.substr(0, colon);
  if (host.size() >= 2 && host.front() == '[' && host.back() == ']') host = host.substr(1, host.size() - 2);
  if (host.find_first_of(" /\\") != std::string::npos) return refuse();
  return io::Endpoint{host.empty() ? "127.0.0.1" : host, port};
}

bool is_loopback(const io::Endpoint& at) {
  if (at.host == "localhost" || at.host == "::1") return true;
  in_addr address{};
  return inet_pton(AF_INET, at.host.c_str(), &address) == 1 && (ntohl(address.s_addr) >> 24U) == 127;
}

}  // namespace lockstep
