// SPDX-License-Identifier: Apache-2.0
#pragma once

/// What a codec tells its perimeter. A codec turns a connection's bytes into messages for the Intake, and answers into
/// bytes for the Outbox; it knows nothing of sockets. Codecs are called per chunk of bytes and per answer, without a
/// virtual call: a perimeter has one of each kind.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "lockstep/trap.hpp"
#include "lockstep/wire.hpp"
#include "runtime/agents/intake.hpp"
#include "runtime/metrics.hpp"

namespace lockstep {

struct Consumed {
  enum class Then : std::uint8_t {
    more,          ///< the rest is the start of something longer, or nothing is left
    wait_room,     ///< the rest must be given again when the sequencer or an executor has room
    wait_answers,  ///< the rest must be given again when requests of this connection have been answered
    drain,         ///< the client is done: answer what is in flight, then close
    close,         ///< close as soon as what was written is sent
  };
  std::size_t bytes = 0;
  Then then = Then::more;
};

struct CodecLimits {
  std::uint32_t max_in_flight = 4096;  ///< unanswered requests of a connection, after which it is not read
  std::uint32_t reply_window = 1024;   ///< of the history (genesis): durable sessions may ask back less far
  std::uint32_t session_expiry_ms = 60'000;

  /// Of a native connection: one window's worth, so that a client that keeps to it never acknowledges too little.
  [[nodiscard]] std::uint32_t native_in_flight() const { return std::min(max_in_flight, reply_window); }
};

/// Counted by a perimeter's thread, read by any.
struct PerimeterMetrics {
  Counter connections;  ///< open now
  Counter connections_total;
  Counter connections_refused_total;  ///< beyond max_connections
  Counter cut_off_total;              ///< clients that did not read
  Counter overdue_total;              ///< clients that did not send the rest of a hello or a frame
  Counter received_bytes_total;
  Counter sent_bytes_total;
  Counter requests_total;
  Counter queries_total;
  Counter session_records_total;  ///< sessions' beginnings, resumptions and ends that were stamped
  Counter answers_total;
  Counter unanswered_total;                      ///< requests in flight when a stop could wait no longer
  Counter orphans_total;                         ///< answers whose connection had gone
  Counter holds_total;                           ///< times a connection was not read, for want of room or of answers
  Counter errors_total[wire::wire_error_count];  ///< by WireError
};

/// A refusal as the wire names it.
[[nodiscard]] wire::WireError refusal(Admission admission);
/// A readable sentence for a client's log.
[[nodiscard]] std::string_view refusal_text(wire::WireError error);
/// As docs/determinism.md and TrapKind have it.
[[nodiscard]] std::string_view trap_name(TrapKind kind);

}  // namespace lockstep
