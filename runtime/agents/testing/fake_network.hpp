// SPDX-License-Identifier: Apache-2.0
#pragma once

/// FakeNetwork: a Network whose clients are the test. Bytes lie in a kernel that the test can look into: what a paused
/// connection is sent stays there, and a client can stop reading. Everything happens at poll(), in the order it was
/// asked for, so a run repeats exactly. One thread.

#include <algorithm>
#include <cstdint>
#include <deque>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/assert.hpp"
#include "runtime/io/network.hpp"

namespace lockstep::testing {

class FakeNetwork final : public io::Network {
 public:
  // What the test does.

  io::ConnectionId connect(std::uint32_t listener = 0) {
    std::uint32_t slot = 0;
    while (peers_.contains(slot)) ++slot;
    const auto id = static_cast<io::ConnectionId>(++generation_ << 32 | slot);
    peers_[slot].id = id;
    events_.push_back(
        {.kind = io::NetworkEventKind::accepted, .error = 0, .listener = listener, .connection = id, .data = {}});
    return id;
  }
  void client_sends(io::ConnectionId id, std::string_view bytes) {
    if (Peer* const peer = find(id)) peer->to_node.append(bytes);
  }
  /// Most bytes one `received` event brings.
  void set_chunk_bytes(std::size_t bytes) { chunk_bytes_ = bytes; }
  /// All the client has read so far; taken out.
  [[nodiscard]] std::string client_reads(io::ConnectionId id) { return std::exchange(to_client_[id], {}); }
  /// A client that stops reading: sends to it do not complete.
  void set_reading(io::ConnectionId id, bool reading) { find(id)->reading = reading; }
  void client_closes(io::ConnectionId id) {
    if (Peer* const peer = find(id)) peer->ended = true;
  }
  [[nodiscard]] bool is_open(io::ConnectionId id) { return find(id) != nullptr; }
  [[nodiscard]] bool is_paused(io::ConnectionId id) { return find(id)->paused; }
  [[nodiscard]] bool is_listening() const { return listening_; }
  [[nodiscard]] std::size_t open_count() const { return peers_.size(); }

  // Network.

  [[nodiscard]] Result<io::Endpoint> listen(const io::Endpoint& at) override { return at; }
  void stop_listening() override { listening_ = false; }
  [[nodiscard]] std::span<const io::NetworkEvent> poll() override {
    given_ = std::exchange(events_, {});
    received_.clear();
    for (auto& [slot, peer] : peers_) poll_peer(peer);
    std::erase_if(peers_, [](const auto& entry) { return entry.second.dead; });
    return given_;
  }
  void send(io::ConnectionId id, std::span<const std::byte> bytes) override {
    Peer* const peer = find(id);
    LOCKSTEP_ASSERT(peer != nullptr, "send on a connection that is dead");
    LOCKSTEP_ASSERT(peer->sending.empty() && !bytes.empty(), "two sends in flight on one connection");
    peer->sending = bytes;
  }
  void pause(io::ConnectionId id) override { live(id).paused = true; }
  void resume(io::ConnectionId id) override { live(id).paused = false; }
  void close(io::ConnectionId id) override { live(id).ended = true; }

 private:
  struct Peer {
    io::ConnectionId id{};
    std::string to_node;
    std::span<const std::byte> sending;
    bool paused = false;
    bool reading = true;
    bool ended = false;
    bool dead = false;
  };

  [[nodiscard]] Peer* find(io::ConnectionId id) {
    const auto found = peers_.find(static_cast<std::uint32_t>(id));
    return found != peers_.end() && found->second.id == id ? &found->second : nullptr;
  }
  [[nodiscard]] Peer& live(io::ConnectionId id) {
    Peer* const peer = find(id);
    LOCKSTEP_ASSERT(peer != nullptr, "a call on a connection that is dead");
    return *peer;
  }
  void add(io::NetworkEventKind kind, const Peer& peer, std::span<const std::byte> data = {}) {
    given_.push_back({.kind = kind, .error = 0, .listener = 0, .connection = peer.id, .data = data});
  }
  void poll_peer(Peer& peer) {
    if (!peer.sending.empty() && (peer.reading || peer.ended)) {
      if (peer.reading) {
        const std::string_view sent(reinterpret_cast<const char*>(peer.sending.data()), peer.sending.size());
        to_client_[peer.id].append(sent);
        add(io::NetworkEventKind::sent, peer);
      }
      peer.sending = {};
    }
    if (!peer.paused && !peer.to_node.empty() && !peer.ended) {
      const std::string& chunk = received_.emplace_back(peer.to_node.substr(0, chunk_bytes_));
      peer.to_node.erase(0, chunk.size());
      add(io::NetworkEventKind::received, peer, std::as_bytes(std::span(chunk)));
    }
    if (peer.ended) {
      add(io::NetworkEventKind::closed, peer);
      peer.dead = true;
    }
  }

  std::map<std::uint32_t, Peer> peers_;
  std::map<io::ConnectionId, std::string> to_client_;
  std::vector<io::NetworkEvent> events_;
  std::vector<io::NetworkEvent> given_;
  std::deque<std::string> received_;
  std::size_t chunk_bytes_ = SIZE_MAX;
  std::uint64_t generation_ = 0;
  bool listening_ = true;
};

}  // namespace lockstep::testing
