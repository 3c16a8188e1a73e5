// SPDX-License-Identifier: Apache-2.0
#include "runtime/io/uring_network.hpp"

#include <sys/socket.h>

#include <algorithm>
#include <cerrno>

#include "base/assert.hpp"
#include "base/clock.hpp"
#include "base/log.hpp"
#include "base/system_error.hpp"
#include "runtime/io/sockets.hpp"

namespace lockstep::io {
namespace {

constexpr std::uint16_t buffer_group = 1;
// A send's length travels in 32 bits, its result in 31.
constexpr std::size_t send_limit_bytes = std::size_t{1} << 30;

bool goes_on(const RingCompletion& completion) {
  return (completion.flags & IORING_CQE_F_MORE) != 0;
}

}  // namespace

UringNetwork::UringNetwork(Ring& ring, const ReactorOptions& options, ReactorCounts& counts)
    : ring_(ring), options_(options), counts_(counts), connections_(options.max_connections) {}

UringNetwork::~UringNetwork() {
  // The kernel drops a closed ring's requests, and the sockets they hold, some time later: until then a listener would
  // still have its port, and a peer an open connection.
  for (const Listener& listener : listeners_) {
    if (listener.socket.is_open()) ::shutdown(listener.socket.get(), SHUT_RDWR);
  }
  for (std::uint32_t slot = 0; slot < connections_.slots(); ++slot) {
    const int fd = connections_.at(slot).fd;
    if (fd < 0) continue;
    ::shutdown(fd, SHUT_RDWR);
    ::close(fd);
  }
}

Result<void> UringNetwork::start() {
  if (auto mapped = buffers_.map(options_.receive_buffers, options_.receive_buffer_bytes); !mapped) return mapped;
  return buffer_ring_.open(ring_, buffers_, buffer_group);
}

Tag UringNetwork::tag_of(TagKind kind, std::uint32_t slot) {
  return {kind, connections_.at(slot).generation, slot};
}

UringNetwork::Connection* UringNetwork::find_open(ConnectionId id) {
  Connection* connection = connections_.find(id);
  return connection != nullptr && !connection->ending ? connection : nullptr;
}

Result<Endpoint> UringNetwork::listen(const Endpoint& at) {
  auto listening = open_listener(at);
  if (!listening) return std::unexpected(listening.error());
  listeners_.push_back({.socket = std::move(listening->socket)});
  arm_accept(static_cast<std::uint32_t>(listeners_.size() - 1));
  return listening->bound;
}

void UringNetwork::stop_listening() {
  for (Listener& listener : listeners_) {
    if (std::exchange(listener.stopping, true)) continue;
    // A multishot accept outlives the close of its descriptor and would go on accepting. A shutdown ends it, and frees
    // the port at once.
    ::shutdown(listener.socket.get(), SHUT_RDWR);
    if (listener.resting) listener.socket.reset();
  }
}

void UringNetwork::arm_accept(std::uint32_t listener) {
  ring_.queue({TagKind::accept, 0, listener}, [&](io_uring_sqe* entry) {
    io_uring_prep_multishot_accept(entry, listeners_[listener].socket.get(), nullptr, nullptr, SOCK_CLOEXEC);
  });
}

void UringNetwork::on_accept(const RingCompletion& completion) {
  const std::uint32_t index = completion.tag.slot;
  Listener& listener = listeners_[index];
  if (completion.result >= 0) add_connection(completion.result, index);
  if (goes_on(completion)) return;
  if (listener.stopping) return listener.socket.reset();
  if (completion.result >= 0 || is_accept_retryable(-completion.result)) return arm_accept(index);
  log(LogLevel::warning, "io", "{}; accepting again in {} ms",
      system_error("accept", "a connection", -completion.result).message, accept_pause_ns / 1'000'000);
  counts_.accept_pauses.add();
  listener.resting = true;
  rest_until_ns_ = SystemClock().steady_ns() + accept_pause_ns;
}

void UringNetwork::add_connection(int fd, std::uint32_t listener) {
  if (listeners_[listener].stopping || connections_.full()) {
    if (!listeners_[listener].stopping) counts_.refused_connections.add();
    ::close(fd);
    return;
  }
  const std::uint32_t slot = connections_.add(fd);
  events_.push({.kind = NetworkEventKind::accepted, .listener = listener, .connection = connections_.id_of(slot)});
  arm_receive(slot);
}

void UringNetwork::arm_receive(std::uint32_t slot) {
  if (buffer_ring_.available() == 0) return starve(slot);
  Connection& connection = connections_.at(slot);
  connection.receiving = true;
  ++connection.outstanding;
  ring_.queue(tag_of(TagKind::receive, slot), [&](io_uring_sqe* entry) {
    io_uring_prep_recv_multishot(entry, connection.fd, nullptr, 0, 0);
    entry->flags |= IOSQE_BUFFER_SELECT;
    entry->buf_group = buffer_ring_.group();
  });
}

void UringNetwork::starve(std::uint32_t slot) {
  Connection& connection = connections_.at(slot);
  if (std::exchange(connection.starved, true)) return;
  counts_.buffer_shortages.add();
  starved_.push_back(connections_.id_of(slot));
}

void UringNetwork::prepare() {
  buffer_ring_.publish();
  // At most one connection per buffer and turn, first come first served: more would only find the ring empty again.
  std::size_t candidates = std::min<std::size_t>(starved_.size(), buffer_ring_.available());
  for (; candidates > 0; --candidates) {
    const ConnectionId id = starved_.front();
    starved_.pop_front();
    Connection* connection = find_open(id);
    if (connection == nullptr) continue;
    connection->starved = false;
    if (connection->paused || connection->receiving) continue;
    counts_.receives_rearmed.add();
    arm_receive(ConnectionTable<Connection>::slot_of(id));
  }
  if (rest_until_ns_ == INT64_MAX || SystemClock().steady_ns() < rest_until_ns_) return;
  rest_until_ns_ = INT64_MAX;
  for (std::uint32_t listener = 0; listener < listeners_.size(); ++listener) {
    if (std::exchange(listeners_[listener].resting, false) && !listeners_[listener].stopping) arm_accept(listener);
  }
}

std::span<const NetworkEvent> UringNetwork::poll() {
  return events_.take([&](auto data) { buffer_ring_.give_back(buffers_.index_of(data)); });
}

void UringNetwork::on_completion(const RingCompletion& completion) {
  const Tag tag = completion.tag;
  if (tag.kind == TagKind::accept) return on_accept(completion);
  LOCKSTEP_ASSERT(tag.slot < connections_.slots() && tag.matches(connections_.at(tag.slot).generation),
                  "a connection was released while the kernel still worked on it");
  switch (tag.kind) {
    case TagKind::receive:
      return on_receive(completion);
    case TagKind::send:
      return on_send(completion);
    default:
      settle(tag.slot);
      return;
  }
}

void UringNetwork::take_data(std::uint32_t slot, const RingCompletion& completion) {
  if ((completion.flags & IORING_CQE_F_BUFFER) == 0) return;
  Connection& connection = connections_.at(slot);
  const std::uint32_t index = completion.flags >> IORING_CQE_BUFFER_SHIFT;
  LOCKSTEP_ASSERT(index < buffers_.count(), "the kernel named a receive buffer that does not exist");
  buffer_ring_.consumed();
  if (completion.result <= 0 || connection.ending) return buffer_ring_.give_back(index);
  const auto data = buffers_.buffer(index).first(static_cast<std::size_t>(completion.result));
  if (connection.paused) return buffers_.hold(connection.held, data);
  events_.push({.kind = NetworkEventKind::received, .connection = connections_.id_of(slot), .data = data});
}

void UringNetwork::on_receive(const RingCompletion& completion) {
  const std::uint32_t slot = completion.tag.slot;
  take_data(slot, completion);
  if (goes_on(completion)) return;
  Connection& connection = connections_.at(slot);
  connection.receiving = false;
  if (settle(slot)) return;
  switch (completion.result) {
    case 0:
      return peer_ended(slot, 0);
    case -ENOBUFS:
      return starve(slot);
    case -ECANCELED:
    case -EINTR:
    case -EAGAIN:
      break;
    default:
      if (completion.result < 0) return peer_ended(slot, -completion.result);
  }
  if (connection.paused) return;
  counts_.receives_rearmed.add();
  arm_receive(slot);
}

void UringNetwork::peer_ended(std::uint32_t slot, int error) {
  Connection& connection = connections_.at(slot);
  if (connection.held.empty()) return end(slot, error);
  connection.peer_ended = true;
  connection.error = error;
}

void UringNetwork::send(ConnectionId id, std::span<const std::byte> bytes) {
  Connection* connection = find_open(id);
  if (connection == nullptr) return;
  LOCKSTEP_ASSERT(!connection->sending, "one send at a time per connection");
  if (bytes.empty()) return events_.push({.kind = NetworkEventKind::sent, .connection = id});
  connection->sending = true;
  connection->rest = bytes;
  arm_send(ConnectionTable<Connection>::slot_of(id));
}

void UringNetwork::arm_send(std::uint32_t slot) {
  Connection& connection = connections_.at(slot);
  ++connection.outstanding;
  ring_.queue(tag_of(TagKind::send, slot), [&](io_uring_sqe* entry) {
    const std::size_t bytes = std::min(connection.rest.size(), send_limit_bytes);
    io_uring_prep_send(entry, connection.fd, connection.rest.data(), bytes, MSG_NOSIGNAL | MSG_WAITALL);
  });
}

void UringNetwork::on_send(const RingCompletion& completion) {
  const std::uint32_t slot = completion.tag.slot;
  if (settle(slot)) return;
  Connection& connection = connections_.at(slot);
  const int result = completion.result;
  if (result == -EINTR || result == -EAGAIN) return arm_send(slot);
  if (result <= 0) return end(slot, result == 0 ? EPIPE : -result);
  connection.rest = connection.rest.subspan(static_cast<std::size_t>(result));
  if (!connection.rest.empty()) {
    counts_.partial_sends.add();
    return arm_send(slot);
  }
  connection.sending = false;
  events_.push({.kind = NetworkEventKind::sent, .connection = connections_.id_of(slot)});
}

void UringNetwork::pause(ConnectionId id) {
  Connection* connection = find_open(id);
  if (connection == nullptr || connection->paused) return;
  connection->paused = true;
  events_.withdraw(id, [&](const NetworkEvent& event) {
    if (event.kind != NetworkEventKind::received) return false;
    buffers_.hold(connection->held, event.data);
    return true;
  });
  if (!connection->receiving) return;
  const Tag receive = tag_of(TagKind::receive, ConnectionTable<Connection>::slot_of(id));
  ring_.queue({}, [&](io_uring_sqe* entry) { io_uring_prep_cancel64(entry, receive.packed(), 0); });
}

void UringNetwork::resume(ConnectionId id) {
  Connection* connection = find_open(id);
  if (connection == nullptr || !connection->paused) return;
  connection->paused = false;
  while (!connection->held.empty()) {
    const auto data = buffers_.unhold(connection->held);
    events_.push({.kind = NetworkEventKind::received, .connection = id, .data = data});
  }
  const std::uint32_t slot = ConnectionTable<Connection>::slot_of(id);
  if (connection->peer_ended) return end(slot, connection->error);
  // While the cancelled receive is still on its way out, its last completion arms the next.
  if (!connection->receiving) arm_receive(slot);
}

void UringNetwork::close(ConnectionId id) {
  if (find_open(id) == nullptr) return;
  events_.withdraw(id, [&](const NetworkEvent& event) {
    if (event.kind == NetworkEventKind::received) buffer_ring_.give_back(buffers_.index_of(event.data));
    return true;
  });
  end(ConnectionTable<Connection>::slot_of(id), 0);
}

void UringNetwork::end(std::uint32_t slot, int error) {
  Connection& connection = connections_.at(slot);
  connection.ending = true;
  connection.error = error;
  while (!connection.held.empty()) buffer_ring_.give_back(buffers_.index_of(buffers_.unhold(connection.held)));
  ::shutdown(connection.fd, SHUT_RDWR);
  ++connection.outstanding;
  if (connection.outstanding > 1) {
    // Counted itself: submitted after the descriptor was closed, it would cancel whoever has the number next.
    ring_.queue(tag_of(TagKind::cancel, slot),
                [&](io_uring_sqe* entry) { io_uring_prep_cancel_fd(entry, connection.fd, IORING_ASYNC_CANCEL_ALL); });
    return;
  }
  settle(slot);
}

bool UringNetwork::settle(std::uint32_t slot) {
  Connection& connection = connections_.at(slot);
  --connection.outstanding;
  if (!connection.ending) return false;
  if (connection.outstanding > 0) return true;
  events_.push({.kind = NetworkEventKind::closed, .error = connection.error, .connection = connections_.id_of(slot)});
  ::close(connection.fd);
  connections_.release(slot);
  return true;
}

}  // namespace lockstep::io
