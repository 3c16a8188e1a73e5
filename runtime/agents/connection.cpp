// SPDX-License-Identifier: Apache-2.0
#include "runtime/agents/connection.hpp"

#include <bit>

#include "base/assert.hpp"
#include "runtime/agents/frames.hpp"
#include "runtime/agents/resp_session.hpp"

namespace lockstep {

Connection::Connection() = default;
Connection::~Connection() = default;
Connection::Connection(Connection&&) noexcept = default;
Connection& Connection::operator=(Connection&&) noexcept = default;

ConnectionTable::ConnectionTable(std::uint32_t max_connections, std::uint64_t incarnation, std::uint8_t perimeter)
    : max_connections_(max_connections),
      session_base_(session_number(incarnation, perimeter, 0)),
      connections_(std::make_unique<Connection[]>(max_connections)),
      by_counter_(std::bit_ceil(std::size_t{max_connections} * 2)) {
  LOCKSTEP_ASSERT(max_connections != 0, "a perimeter without connections serves nobody");
  free_.reserve(max_connections);
}

Connection* ConnectionTable::open(io::ConnectionId id) {
  if (count_ == max_connections_) return nullptr;
  Connection* connection = nullptr;
  if (free_.empty()) {
    connection = &connections_[used_++];
  } else {
    connection = free_.back();
    free_.pop_back();
  }
  const std::size_t mask = by_counter_.size() - 1;
  do ++counter_;
  while (by_counter_[counter_ & mask] != nullptr || counter_ == 0);
  by_counter_[counter_ & mask] = connection;
  const std::uint32_t slot = network_slot(id);
  if (slot >= by_network_slot_.size()) by_network_slot_.resize(std::bit_ceil(std::size_t{slot} + 1));
  by_network_slot_[slot] = connection;
  connection->id = id;
  connection->session = session_base_ | counter_;
  ++count_;
  return connection;
}

Connection* ConnectionTable::find(io::ConnectionId id) {
  const std::uint32_t slot = network_slot(id);
  if (slot >= by_network_slot_.size()) return nullptr;
  Connection* const connection = by_network_slot_[slot];
  return connection != nullptr && connection->id == id ? connection : nullptr;
}

Connection* ConnectionTable::find_session(std::uint64_t session) {
  Connection* const connection = by_counter_[session & (by_counter_.size() - 1)];
  return connection != nullptr && connection->session == session ? connection : nullptr;
}

void ConnectionTable::release(Connection& connection) {
  by_network_slot_[network_slot(connection.id)] = nullptr;
  by_counter_[connection.session & (by_counter_.size() - 1)] = nullptr;
  connection = Connection{};
  free_.push_back(&connection);
  --count_;
}

}  // namespace lockstep
