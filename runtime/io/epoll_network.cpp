// SPDX-License-Identifier: Apache-2.0
#include "runtime/io/epoll_network.hpp"

#include <fcntl.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include <cerrno>

#include "base/assert.hpp"
#include "base/clock.hpp"
#include "base/log.hpp"
#include "base/system_error.hpp"
#include "runtime/io/sockets.hpp"

namespace lockstep::io {
namespace {

constexpr int accepts_per_turn = 64;

bool would_block(int error) {
  return error == EAGAIN || error == EWOULDBLOCK;
}

}  // namespace

EpollNetwork::EpollNetwork(int epoll, const ReactorOptions& options, ReactorCounts& counts)
    : epoll_(epoll), options_(options), counts_(counts), connections_(options.max_connections) {}

EpollNetwork::~EpollNetwork() {
  for (std::uint32_t slot = 0; slot < connections_.slots(); ++slot) {
    if (connections_.at(slot).fd >= 0) ::close(connections_.at(slot).fd);
  }
}

Result<void> EpollNetwork::start() {
  if (auto mapped = buffers_.map(options_.receive_buffers, options_.receive_buffer_bytes); !mapped) return mapped;
  for (std::uint32_t index = buffers_.count(); index > 0; --index) free_buffers_.push_back(index - 1);
  return {};
}

Result<Endpoint> EpollNetwork::listen(const Endpoint& at) {
  auto listening = open_listener(at);
  if (!listening) return std::unexpected(listening.error());
  const int fd = listening->socket.get();
  ::fcntl(fd, F_SETFL, O_NONBLOCK);
  const std::uint64_t tag = Tag{TagKind::accept, 0, static_cast<std::uint32_t>(listeners_.size())}.packed();
  epoll_event interest{EPOLLIN, {.u64 = tag}};
  if (::epoll_ctl(epoll_, EPOLL_CTL_ADD, fd, &interest) != 0) return system_failure("listen", "on " + at.text(), errno);
  listeners_.push_back(std::move(listening->socket));
  return listening->bound;
}

void EpollNetwork::stop_listening() {
  for (Descriptor& listener : listeners_) listener.reset();
  rest_until_ns_ = INT64_MAX;
}

std::span<const NetworkEvent> EpollNetwork::poll() {
  const auto events = events_.take([&](auto data) { free_buffers_.push_back(buffers_.index_of(data)); });
  if (!free_buffers_.empty()) {
    for (const std::uint32_t slot : starved_) {
      if (connections_.at(slot).fd >= 0) watch(slot);
    }
    starved_.clear();
  }
  return events;
}

void EpollNetwork::on_ready(Tag tag, std::uint32_t readiness) {
  if (tag.kind == TagKind::accept) {
    if (listeners_[tag.slot].is_open()) accept_some(tag.slot);
    return;
  }
  Connection& connection = connections_.at(tag.slot);
  if (connection.fd < 0 || !tag.matches(connection.generation)) return;
  if ((readiness & EPOLLOUT) != 0 && connection.sending) send_some(tag.slot);
  if (connection.fd < 0 || !tag.matches(connection.generation)) return;
  if ((connection.watched & EPOLLIN) != 0) {
    receive_some(tag.slot);
  } else if ((readiness & (EPOLLHUP | EPOLLERR)) != 0) {
    // epoll reports these whether asked or not; a paused connection would keep wait() from sleeping.
    ::epoll_ctl(epoll_, EPOLL_CTL_DEL, connection.fd, nullptr);
    connection.registered = false;
    connection.watched = 0;
    if (connection.sending) end(tag.slot, ECONNRESET);
  }
}

void EpollNetwork::accept_some(std::uint32_t listener) {
  for (int i = 0; i < accepts_per_turn; ++i) {
    const int fd = ::accept4(listeners_[listener].get(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (fd >= 0) {
      add_connection(fd, listener);
      continue;
    }
    if (would_block(errno)) return;
    if (!is_accept_retryable(errno)) return rest(listener);
  }
}

void EpollNetwork::rest(std::uint32_t listener) {
  log(LogLevel::warning, "io", "{}; accepting again in {} ms", system_error("accept", "a connection", errno).message,
      accept_pause_ns / 1'000'000);
  counts_.accept_pauses.add();
  epoll_event interest{0, {.u64 = Tag{TagKind::accept, 0, listener}.packed()}};
  ::epoll_ctl(epoll_, EPOLL_CTL_MOD, listeners_[listener].get(), &interest);
  rest_until_ns_ = SystemClock().steady_ns() + accept_pause_ns;
}

void EpollNetwork::wake_listeners(std::int64_t steady_ns) {
  if (steady_ns < rest_until_ns_) return;
  rest_until_ns_ = INT64_MAX;
  for (std::uint32_t listener = 0; listener < listeners_.size(); ++listener) {
    epoll_event interest{EPOLLIN, {.u64 = Tag{TagKind::accept, 0, listener}.packed()}};
    ::epoll_ctl(epoll_, EPOLL_CTL_MOD, listeners_[listener].get(), &interest);
  }
}

void EpollNetwork::add_connection(int fd, std::uint32_t listener) {
  if (connections_.full()) {
    counts_.refused_connections.add();
    ::close(fd);
    return;
  }
  const std::uint32_t slot = connections_.add(fd);
  events_.push({.kind = NetworkEventKind::accepted, .listener = listener, .connection = connections_.id_of(slot)});
  watch(slot);
}

void EpollNetwork::watch(std::uint32_t slot) {
  Connection& connection = connections_.at(slot);
  const std::uint32_t wanted = (connection.paused ? 0u : EPOLLIN) | (connection.rest.empty() ? 0u : EPOLLOUT);
  if (connection.registered && connection.watched == wanted) return;
  epoll_event interest{wanted, {.u64 = Tag{TagKind::receive, connection.generation, slot}.packed()}};
  const int operation = connection.registered ? EPOLL_CTL_MOD : EPOLL_CTL_ADD;
  if (::epoll_ctl(epoll_, operation, connection.fd, &interest) != 0) return end(slot, errno);
  connection.registered = true;
  connection.watched = wanted;
}

void EpollNetwork::receive_some(std::uint32_t slot) {
  Connection& connection = connections_.at(slot);
  if (free_buffers_.empty()) {
    counts_.buffer_shortages.add();
    epoll_event interest{connection.watched & ~EPOLLIN,
                         {.u64 = Tag{TagKind::receive, connection.generation, slot}.packed()}};
    ::epoll_ctl(epoll_, EPOLL_CTL_MOD, connection.fd, &interest);
    connection.watched &= ~EPOLLIN;
    starved_.push_back(slot);
    return;
  }
  const std::uint32_t index = free_buffers_.back();
  const std::span<std::byte> buffer = buffers_.buffer(index);
  const ssize_t got = ::recv(connection.fd, buffer.data(), buffer.size(), 0);
  if (got > 0) {
    free_buffers_.pop_back();
    events_.push({.kind = NetworkEventKind::received,
                  .connection = connections_.id_of(slot),
                  .data = buffer.first(static_cast<std::size_t>(got))});
  } else if (got == 0) {
    end(slot, 0);
  } else if (!would_block(errno) && errno != EINTR) {
    end(slot, errno);
  }
}

void EpollNetwork::send(ConnectionId id, std::span<const std::byte> bytes) {
  Connection* connection = connections_.find(id);
  if (connection == nullptr) return;
  LOCKSTEP_ASSERT(!connection->sending, "one send at a time per connection");
  connection->sending = true;
  connection->rest = bytes;
  send_some(ConnectionTable<Connection>::slot_of(id));
}

void EpollNetwork::send_some(std::uint32_t slot) {
  Connection& connection = connections_.at(slot);
  while (!connection.rest.empty()) {
    const ssize_t put = ::send(connection.fd, connection.rest.data(), connection.rest.size(), MSG_NOSIGNAL);
    if (put >= 0) {
      connection.rest = connection.rest.subspan(static_cast<std::size_t>(put));
      if (!connection.rest.empty()) counts_.partial_sends.add();
      continue;
    }
    if (errno == EINTR) continue;
    if (!would_block(errno)) return end(slot, errno);
    break;
  }
  if (connection.rest.empty()) {
    connection.sending = false;
    events_.push({.kind = NetworkEventKind::sent, .connection = connections_.id_of(slot)});
  }
  watch(slot);
}

void EpollNetwork::pause(ConnectionId id) {
  Connection* connection = connections_.find(id);
  if (connection == nullptr || connection->paused) return;
  connection->paused = true;
  events_.withdraw(id, [&](const NetworkEvent& event) {
    if (event.kind != NetworkEventKind::received) return false;
    buffers_.hold(connection->held, event.data);
    return true;
  });
  watch(ConnectionTable<Connection>::slot_of(id));
}

void EpollNetwork::resume(ConnectionId id) {
  Connection* connection = connections_.find(id);
  if (connection == nullptr || !connection->paused) return;
  connection->paused = false;
  while (!connection->held.empty()) {
    const auto data = buffers_.unhold(connection->held);
    events_.push({.kind = NetworkEventKind::received, .connection = id, .data = data});
  }
  watch(ConnectionTable<Connection>::slot_of(id));
}

void EpollNetwork::close(ConnectionId id) {
  if (connections_.find(id) == nullptr) return;
  events_.withdraw(id, [&](const NetworkEvent& event) {
    if (event.kind == NetworkEventKind::received) free_buffers_.push_back(buffers_.index_of(event.data));
    return true;
  });
  end(ConnectionTable<Connection>::slot_of(id), 0);
}

void EpollNetwork::end(std::uint32_t slot, int error) {
  Connection& connection = connections_.at(slot);
  while (!connection.held.empty()) free_buffers_.push_back(buffers_.index_of(buffers_.unhold(connection.held)));
  events_.push({.kind = NetworkEventKind::closed, .error = error, .connection = connections_.id_of(slot)});
  ::close(connection.fd);
  connections_.release(slot);
}

}  // namespace lockstep::io
