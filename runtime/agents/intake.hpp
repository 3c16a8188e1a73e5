// SPDX-License-Identifier: Apache-2.0
#pragma once

/// Intake: the gate behind the codecs. It takes a framed message, copies it once to where the sequencer wants it,
/// checks it there against what the application receives, and lets it in: as a record for the sequencer (directly when
/// both share a thread, over a ring when not), or as a query for the executor that owns the actor. What it refuses
/// leaves no trace.
///
/// Belongs to one perimeter and its thread.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "lockstep/address.hpp"
#include "lockstep/application.hpp"
#include "runtime/agents/sequencer.hpp"
#include "runtime/ring/byte_ring.hpp"

namespace lockstep {

/// A message as a codec framed it; `payload` may lie anywhere.
struct InboundMessage {
  std::uint32_t actor_type = 0;
  std::uint32_t message_type = 0;
  std::uint64_t key = 0;
  std::uint64_t session = 0;
  std::uint64_t request = 0;
  std::uint32_t ack_distance = 0;
  std::span<const std::byte> payload;
};

enum class Admission {
  accepted,
  no_room,  ///< back-pressure: the same message again in a later turn
  halted,   ///< the node stores nothing more; see Routes::halted
  unknown_type,
  too_large,
  verification_failed,
};

class Intake {
 public:
  struct Routes {
    /// The sequencer of the same thread, or null.
    Sequencer* sequencer = nullptr;
    /// Else the ring to it.
    ByteRing* records = nullptr;
    /// One per executor; empty when the node takes no queries.
    std::vector<ByteRing*> queries;
    /// Which of them owns an actor's shard; `context` is handed through.
    std::uint32_t (*executor_of)(const void* context, const Address& actor) = nullptr;
    const void* context = nullptr;
    /// Nothing is let in but queries: the node has halted before a message that crashes it.
    bool halted = false;
  };

  /// `application` outlives it. `max_payload_bytes` must fit the batches and, with rings, half of a ring.
  Intake(const Application& application, Routes routes, std::size_t max_payload_bytes);

  [[nodiscard]] Admission submit(const InboundMessage& message, std::int64_t arrival_ns);
  [[nodiscard]] Admission query(const InboundMessage& message);
  /// A session's record: `kind` is session_open or session_close, `payload` what it carries. Accepted, no_room or
  /// halted.
  [[nodiscard]] Admission submit_session(RecordKind kind, std::uint64_t session, std::uint64_t route,
                                         std::span<const std::byte> payload, std::int64_t arrival_ns);

  /// Makes what was let in visible to the other threads; once a loop turn.
  void flush();

  [[nodiscard]] std::size_t max_payload_bytes() const { return max_payload_bytes_; }
  [[nodiscard]] bool is_halted() const { return routes_.halted; }
  [[nodiscard]] bool takes_queries() const { return !routes_.queries.empty(); }

 private:
  struct alignas(16) Unit {
    std::byte bytes[16];
  };

  [[nodiscard]] Admission submit_to_ring(const RecordHeader& header, std::span<const std::byte> payload,
                                         const Handler& handler);

  const Application& application_;
  Routes routes_;
  std::size_t max_payload_bytes_;
  std::unique_ptr<Unit[]> scratch_;  ///< where a query is aligned for its check
};

}  // namespace lockstep
