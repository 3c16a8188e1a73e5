// SPDX-License-Identifier: Apache-2.0
#pragma once

/// ConnectionTable: the connections of one Network, by slot. A ConnectionId is slot and generation; a slot's generation
/// grows when it is released, so an id that outlives its connection finds nothing, and a slot whose generations are
/// used up is retired. Slots are added when accepting needs one, up to the limit; addresses of connections change only
/// then. One thread.
///
/// `Connection` derives from ConnectionBase and adds what its backend needs.

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "runtime/io/network.hpp"
#include "runtime/io/receive_buffers.hpp"

namespace lockstep::io {

struct ConnectionBase {
  int fd = -1;  ///< -1: the slot is free
  std::uint32_t generation = 1;
  bool paused = false;
  bool sending = false;             ///< a send was asked for and its `sent` event is not gathered yet
  std::span<const std::byte> rest;  ///< what of that send is still to go
  HeldBuffers held;                 ///< received while paused, delivered at resume()
};

template <class Connection>
class ConnectionTable {
 public:
  explicit ConnectionTable(std::uint32_t limit) : limit_(limit) {}

  [[nodiscard]] bool full() const { return live_ == limit_; }
  [[nodiscard]] std::uint32_t live() const { return live_; }
  [[nodiscard]] std::uint32_t slots() const { return static_cast<std::uint32_t>(slots_.size()); }
  [[nodiscard]] Connection& at(std::uint32_t slot) { return slots_[slot]; }

  /// The slot of a live connection, or null when the id is dead or never was.
  [[nodiscard]] Connection* find(ConnectionId id) {
    const std::uint32_t slot = slot_of(id);
    if (slot >= slots_.size()) return nullptr;
    Connection& connection = slots_[slot];
    const bool alive = connection.fd >= 0 && connection.generation == static_cast<std::uint64_t>(id) >> 32;
    return alive ? &connection : nullptr;
  }

  [[nodiscard]] static std::uint32_t slot_of(ConnectionId id) { return static_cast<std::uint32_t>(id); }
  [[nodiscard]] ConnectionId id_of(std::uint32_t slot) const {
    return ConnectionId{std::uint64_t{slots_[slot].generation} << 32 | slot};
  }

  /// Takes a slot for an accepted socket; not when full().
  [[nodiscard]] std::uint32_t add(int fd) {
    ++live_;
    if (free_.empty()) {
      free_.push_back(slots());
      slots_.emplace_back();
      free_.reserve(slots_.capacity());
    }
    const std::uint32_t slot = free_.back();
    free_.pop_back();
    slots_[slot].fd = fd;
    return slot;
  }

  void release(std::uint32_t slot) {
    --live_;
    const std::uint32_t generation = slots_[slot].generation;
    slots_[slot] = Connection{};
    slots_[slot].generation = generation + 1;
    if (generation != last_generation) free_.push_back(slot);
  }

 private:
  static constexpr std::uint32_t last_generation = UINT32_MAX;

  const std::uint32_t limit_;
  std::uint32_t live_ = 0;
  std::vector<Connection> slots_;
  std::vector<std::uint32_t> free_;
};

}  // namespace lockstep::io
