// SPDX-License-Identifier: Apache-2.0
#include "runtime/io/test_support.hpp"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <thread>

namespace lockstep::io::test {

void on_each_backend(const std::function<void(Backend)>& body) {
  for (const Backend backend : {Backend::epoll, Backend::uring}) {
    auto possible = make_reactor(backend);
    if (!possible) {
      MESSAGE("left out: " << possible.error().message);
      continue;
    }
    const std::string name(possible.value()->backend());
    possible->reset();
    CAPTURE(name);
    body(backend);
  }
}

std::unique_ptr<Reactor> reactor_of(Backend backend, const ReactorOptions& options) {
  auto reactor = make_reactor(backend, options);
  REQUIRE_MESSAGE(reactor.has_value(), (reactor ? "" : reactor.error().message));
  return std::move(*reactor);
}

bool try_connect(int fd, std::uint16_t port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  return ::connect(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0;
}

void connect_socket(int fd, std::uint16_t port) {
  REQUIRE(try_connect(fd, port));
  const timeval limit{60, 0};
  ::setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
  const int on = 1;
  ::setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
}

Descriptor connect_to(std::uint16_t port) {
  Descriptor socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  REQUIRE(socket.is_open());
  connect_socket(socket.get(), port);
  return socket;
}

std::vector<std::byte> pattern(std::size_t bytes, std::uint64_t seed) {
  std::vector<std::byte> result(bytes);
  std::uint64_t x = seed * 0x9E3779B97F4A7C15u + 1;
  for (std::size_t done = 0; done < bytes; done += sizeof x) {
    x = x * 6364136223846793005u + 1442695040888963407u;
    std::memcpy(result.data() + done, &x, std::min(sizeof x, bytes - done));
  }
  return result;
}

void send_all(int fd, std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t put = ::send(fd, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    REQUIRE(put > 0);
    bytes = bytes.subspan(static_cast<std::size_t>(put));
  }
}

std::vector<std::byte> receive_exactly(int fd, std::size_t count) {
  std::vector<std::byte> result(count);
  std::size_t done = 0;
  while (done < count) {
    const ssize_t got = ::recv(fd, result.data() + done, count - done, 0);
    if (got <= 0) break;
    done += static_cast<std::size_t>(got);
  }
  result.resize(done);
  return result;
}

std::size_t open_descriptors() {
  const std::filesystem::directory_iterator all("/proc/self/fd");
  return static_cast<std::size_t>(std::distance(begin(all), end(all)));
}

std::size_t received_bytes(const Server& server) {
  std::size_t total = 0;
  for (const auto& [id, bytes] : server.received) total += bytes.size();
  return total;
}

void reset_connection(Descriptor& socket) {
  const linger at_once{1, 0};
  REQUIRE(::setsockopt(socket.get(), SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once) == 0);
  socket.reset();
}

LowerLimit::LowerLimit(int resource, rlim_t value) : resource_(resource) {
  REQUIRE(::getrlimit(static_cast<__rlimit_resource_t>(resource_), &before_) == 0);
  const rlimit lower{value, before_.rlim_max};
  REQUIRE(::setrlimit(static_cast<__rlimit_resource_t>(resource_), &lower) == 0);
}

void LowerLimit::restore() {
  ::setrlimit(static_cast<__rlimit_resource_t>(resource_), &before_);
}

Server::Server(Backend backend, const ReactorOptions& options) : reactor_(reactor_of(backend, options)) {
  const auto bound = network().listen({});
  REQUIRE(bound.has_value());
  port_ = bound->port;
}

std::size_t Server::step() {
  if (reactor_->turn() == 0) {
    reactor_->wait(1'000'000);
    reactor_->turn();
  }
  const auto events = network().poll();
  for (const NetworkEvent& event : events) {
    switch (event.kind) {
      case NetworkEventKind::accepted:
        accepted.push_back(event.connection);
        break;
      case NetworkEventKind::received: {
        auto& bytes = received[event.connection];
        bytes.insert(bytes.end(), event.data.begin(), event.data.end());
        break;
      }
      case NetworkEventKind::sent:
        ++sent[event.connection];
        break;
      case NetworkEventKind::closed:
        CHECK(!closed_error.contains(event.connection));
        closed_error[event.connection] = event.error;
        ++closes;
        break;
    }
    on_event(event);
  }
  return events.size();
}

void Server::until(const std::function<bool()>& done) {
  const auto limit = std::chrono::steady_clock::now() + std::chrono::seconds(60);
  while (!done()) {
    REQUIRE(std::chrono::steady_clock::now() < limit);
    step();
  }
}

void Server::settle(int milliseconds) {
  const auto limit = std::chrono::steady_clock::now() + std::chrono::milliseconds(milliseconds);
  while (std::chrono::steady_clock::now() < limit) step();
}

ConnectionId Server::accept() {
  until([this] { return accepted.size() > taken_; });
  return accepted[taken_++];
}

}  // namespace lockstep::io::test
