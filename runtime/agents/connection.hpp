// SPDX-License-Identifier: Apache-2.0
#pragma once

/// Connection: what a perimeter knows of one client: its session, bytes that wait in either direction, and how far it
/// has come on its way from hello to close. An idle one holds no buffer.
///
/// ConnectionTable finds connections by the network's id and by session, both without hashing. Sessions are numbered so
/// that a session's low bits are its place in a table twice the size of the connection limit; a number whose place is
/// taken is passed over.
///
/// Belong to one perimeter and its thread.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/io/network.hpp"

namespace lockstep {

struct RespSession;

enum class CodecKind : std::uint8_t { native, resp };

/// Why a connection's input is not being read.
enum class Hold : std::uint8_t {
  none,
  room,     ///< the sequencer or a query ring is full
  answers,  ///< max_in_flight requests are unanswered
  ended,    ///< nothing it sends matters any more
};

struct Connection {
  io::ConnectionId id = io::ConnectionId::none;  ///< none: the slot is free
  std::uint64_t session = 0;                     ///< ephemeral: its number, and where answers to it are routed
  std::uint64_t durable = 0;                     ///< native: the session it speaks for, once that is open
  std::uint64_t secret = 0;                      ///< native: of that session
  std::uint32_t capabilities = 0;                ///< native: that both sides have
  std::uint32_t in_flight = 0;                   ///< requests, queries and session records without an answer
  CodecKind codec = CodecKind::native;
  Hold hold = Hold::none;
  bool greeted = false;          ///< native: said hello
  bool opening = false;          ///< native: its session is being opened or resumed
  bool sending = false;          ///< a send is in flight; `outgoing` may not change
  bool dirty = false;            ///< listed for the flush at the turn's end
  bool close_when_idle = false;  ///< said goodbye: close when nothing is in flight
  bool close_when_flushed = false;
  bool closing = false;          ///< close() was called
  std::int64_t close_by_ns = 0;  ///< steady time; when close_when_flushed waits for a client that does not read
  std::int64_t frame_by_ns = 0;  ///< steady time; of FrameDeadlines, as the next two; 0: it owes nothing
  Connection* owing_before = nullptr;
  Connection* owing_behind = nullptr;
  std::string input;                  ///< the start of a frame whose rest has not come, or what is held back
  std::string outgoing;               ///< in flight
  std::string output;                 ///< to be sent next
  std::unique_ptr<RespSession> resp;  ///< of a RESP connection that has spoken

  Connection();
  ~Connection();
  Connection(Connection&&) noexcept;
  Connection& operator=(Connection&&) noexcept;

  [[nodiscard]] std::size_t unsent_bytes() const { return outgoing.size() + output.size(); }
};

class ConnectionTable {
 public:
  /// Sessions are session_number(incarnation, perimeter, …).
  ConnectionTable(std::uint32_t max_connections, std::uint64_t incarnation, std::uint8_t perimeter);

  /// A new connection with a session, or nullptr at the limit.
  [[nodiscard]] Connection* open(io::ConnectionId id);
  /// nullptr when it is not (or no longer) known.
  [[nodiscard]] Connection* find(io::ConnectionId id);
  [[nodiscard]] Connection* find_session(std::uint64_t session);
  void release(Connection& connection);

  [[nodiscard]] std::uint32_t count() const { return count_; }
  [[nodiscard]] std::span<Connection> all() { return {connections_.get(), used_}; }

 private:
  [[nodiscard]] static std::uint32_t network_slot(io::ConnectionId id) { return static_cast<std::uint32_t>(id); }

  std::uint32_t max_connections_;
  std::uint64_t session_base_;
  std::uint32_t counter_ = 0;
  std::uint32_t count_ = 0;
  std::uint32_t used_ = 0;                     ///< slots ever used
  std::unique_ptr<Connection[]> connections_;  ///< never move: sends read from them
  std::vector<Connection*> free_;
  std::vector<Connection*> by_network_slot_;
  std::vector<Connection*> by_counter_;
};

}  // namespace lockstep
