// SPDX-License-Identifier: Apache-2.0
#include "runtime/io/sockets.hpp"

#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <cerrno>
#include <chrono>
#include <memory>
#include <thread>

#include "base/system_error.hpp"

namespace lockstep::io {
namespace {

using AddressList = std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)>;

Result<AddressList> resolve(const Endpoint& at) {
  addrinfo hints{};
  hints.ai_family = AF_UNSPEC;
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_PASSIVE | AI_NUMERICSERV;
  addrinfo* found = nullptr;
  const int error = ::getaddrinfo(at.host.c_str(), std::to_string(at.port).c_str(), &hints, &found);
  if (error != 0) {
    return fail(ErrorCode::usage, "listen on " + at.text() + ": " + ::gai_strerror(error) +
                                      "; give an address of this host, such as 127.0.0.1:7000");
  }
  return AddressList(found, &::freeaddrinfo);
}

/// Binds and listens. A process that was killed while its io_uring accepted leaves the port taken for some
/// milliseconds, until the kernel has dropped that ring: so a port in use is tried again for a while. 0 or an errno.
int bind_and_listen(int fd, const addrinfo& address) {
  constexpr int attempts = 50;
  constexpr auto pause = std::chrono::milliseconds(20);
  for (int attempt = 1;; ++attempt) {
    if (::bind(fd, address.ai_addr, address.ai_addrlen) == 0 && ::listen(fd, SOMAXCONN) == 0) return 0;
    if (errno != EADDRINUSE || attempt == attempts) return errno;
    std::this_thread::sleep_for(pause);
  }
}

std::uint16_t port_of(const sockaddr_storage& address) {
  if (address.ss_family == AF_INET6) return ntohs(reinterpret_cast<const sockaddr_in6&>(address).sin6_port);
  return ntohs(reinterpret_cast<const sockaddr_in&>(address).sin_port);
}

}  // namespace

Result<ListeningSocket> open_listener(const Endpoint& at) {
  auto addresses = resolve(at);
  if (!addresses) return std::unexpected(addresses.error());
  const addrinfo& address = **addresses;

  const std::string object = "on " + at.text();
  Descriptor listener(::socket(address.ai_family, SOCK_STREAM | SOCK_CLOEXEC, IPPROTO_TCP));
  if (!listener.is_open()) return system_failure("listen", object, errno);
  const int on = 1;
  ::setsockopt(listener.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  if (at.shared) ::setsockopt(listener.get(), SOL_SOCKET, SO_REUSEPORT, &on, sizeof on);
  // Linux hands this option on to accepted sockets, which saves a system call for each.
  ::setsockopt(listener.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  if (const int error = bind_and_listen(listener.get(), address); error != 0)
    return system_failure("listen", object, error);

  sockaddr_storage bound{};
  socklen_t length = sizeof bound;
  if (::getsockname(listener.get(), reinterpret_cast<sockaddr*>(&bound), &length) != 0)
    return system_failure("listen", object, errno);
  return ListeningSocket{std::move(listener), Endpoint{at.host, port_of(bound), at.shared}};
}

bool is_accept_retryable(int error) {
  // accept(2) passes on errors that the new connection already has.
  switch (error) {
    case EINTR:
    case ECANCELED:
    case EAGAIN:
    case ECONNABORTED:
    case EPROTO:
    case ENETDOWN:
    case ENOPROTOOPT:
    case EHOSTDOWN:
    case ENONET:
    case EHOSTUNREACH:
    case EOPNOTSUPP:
    case ENETUNREACH:
    case EPERM:
      return true;
    default:
      return false;
  }
}

}  // namespace lockstep::io
