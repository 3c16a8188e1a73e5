// SPDX-License-Identifier: Apache-2.0
#include "runtime/agents/outbox.hpp"

#include <algorithm>
#include <utility>

namespace lockstep {
namespace {

constexpr std::size_t spare_buffers = 256;
/// A buffer that one large reply blew up is not kept.
constexpr std::size_t largest_kept_bytes = 256 * 1024;
constexpr std::size_t first_bytes = 4096;

}  // namespace

std::string Outbox::take_buffer() {
  std::string buffer;
  if (spare_.empty()) {
    buffer.reserve(first_bytes);
  } else {
    buffer.swap(spare_.back());
    spare_.pop_back();
  }
  return buffer;
}

void Outbox::give_back(std::string& buffer) {
  std::string taken = std::exchange(buffer, std::string());
  if (taken.capacity() < first_bytes || taken.capacity() > largest_kept_bytes || spare_.size() == spare_buffers) return;
  taken.clear();
  spare_.push_back(std::move(taken));
}

void Outbox::mark(Connection& connection) {
  connection.dirty = true;
  dirty_.push_back(&connection);
  if (connection.output.capacity() < first_bytes) connection.output = take_buffer();
}

void Outbox::flush(std::vector<Connection*>& cut_off) {
  for (Connection* const connection : dirty_) {
    connection->dirty = false;
    if (connection->closing) continue;
    if (connection->unsent_bytes() > max_output_bytes_) {
      cut_off.push_back(connection);
      continue;
    }
    if (connection->sending) continue;
    if (connection->output.empty()) {
      give_back(connection->output);
      continue;
    }
    connection->outgoing.swap(connection->output);
    connection->sending = true;
    bytes_sent_ += connection->outgoing.size();
    network_.send(connection->id, std::as_bytes(std::span(connection->outgoing)));
  }
  dirty_.clear();
}

void Outbox::sent(Connection& connection) {
  connection.sending = false;
  give_back(connection.outgoing);
  if (!connection.output.empty() && !connection.dirty) mark(connection);
}

void Outbox::forget(Connection& connection) {
  if (connection.dirty) std::erase(dirty_, &connection);
  give_back(connection.input);
  give_back(connection.outgoing);
  give_back(connection.output);
}

}  // namespace lockstep
