// SPDX-License-Identifier: Apache-2.0
#include "client/socket.hpp"

#include <fmt/format.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <memory>
#include <system_error>
#include <utility>

namespace lockstep::client {
namespace {

std::string errno_text(int error) {
  return std::generic_category().message(error);
}

/// Waits for poll(2) events; 0 at the deadline.
int wait_events(int descriptor, short events, Deadline deadline) {
  for (;;) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - std::chrono::steady_clock::now()).count();
    pollfd entry{descriptor, events, 0};
    const int ready = ::poll(&entry, 1, static_cast<int>(std::clamp<std::int64_t>(left, 0, 3'600'000)));
    if (ready > 0) return entry.revents;
    if (ready == 0 && left <= 3'600'000) return 0;
    if (ready < 0 && errno != EINTR) return POLLERR;
  }
}

/// 0, or why the connection did not come about.
int finish_connect(int descriptor, const addrinfo& address, Deadline deadline) {
  if (::connect(descriptor, address.ai_addr, address.ai_addrlen) == 0) return 0;
  if (errno != EINPROGRESS && errno != EINTR) return errno;
  if (wait_events(descriptor, POLLOUT, deadline) == 0) return ETIMEDOUT;
  int error = 0;
  socklen_t size = sizeof error;
  return ::getsockopt(descriptor, SOL_SOCKET, SO_ERROR, &error, &size) == 0 ? error : errno;
}

bool would_block(int error) {
  return error == EAGAIN || error == EWOULDBLOCK || error == EINTR;
}

}  // namespace

std::expected<ClientSocket, std::string> ClientSocket::connect(const std::string& host, std::uint16_t port,
                                                               Deadline deadline) {
  addrinfo hints{};
  hints.ai_family = AF_UNSPEC;
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_NUMERICSERV;
  addrinfo* found = nullptr;
  if (const int failed = ::getaddrinfo(host.c_str(), std::to_string(port).c_str(), &hints, &found); failed != 0)
    return std::unexpected(fmt::format("resolving {}: {}", host, ::gai_strerror(failed)));
  const std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)> addresses(found, &::freeaddrinfo);

  int error = 0;
  for (const addrinfo* at = addresses.get(); at != nullptr; at = at->ai_next) {
    ClientSocket socket(::socket(at->ai_family, at->ai_socktype | SOCK_NONBLOCK | SOCK_CLOEXEC, at->ai_protocol));
    if (socket.descriptor_ < 0) {
      error = errno;
      continue;
    }
    error = finish_connect(socket.descriptor_, *at, deadline);
    if (error != 0) continue;
    const int on = 1;
    ::setsockopt(socket.descriptor_, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    return socket;
  }
  return std::unexpected(fmt::format("connecting to {}:{}: {}", host, port, errno_text(error)));
}

ClientSocket::ClientSocket(ClientSocket&& other) noexcept : descriptor_(std::exchange(other.descriptor_, -1)) {}

ClientSocket& ClientSocket::operator=(ClientSocket&& other) noexcept {
  std::swap(descriptor_, other.descriptor_);
  return *this;
}

ClientSocket::~ClientSocket() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

std::expected<std::size_t, std::string> ClientSocket::write(std::span<const std::byte> bytes) {
  const ssize_t written = ::send(descriptor_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
  if (written >= 0) return static_cast<std::size_t>(written);
  if (would_block(errno)) return std::size_t{0};
  return std::unexpected("sending to the node: " + errno_text(errno));
}

std::expected<std::size_t, std::string> ClientSocket::read(std::span<std::byte> into) {
  const ssize_t got = ::recv(descriptor_, into.data(), into.size(), 0);
  if (got > 0) return static_cast<std::size_t>(got);
  if (got == 0) return std::unexpected(std::string("the node closed the connection"));
  if (would_block(errno)) return std::size_t{0};
  return std::unexpected("receiving from the node: " + errno_text(errno));
}

bool ClientSocket::wait(bool for_write, Deadline deadline) {
  return wait_events(descriptor_, static_cast<short>(POLLIN | (for_write ? POLLOUT : 0)), deadline) != 0;
}

}  // namespace lockstep::client
