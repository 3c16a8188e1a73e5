// SPDX-License-Identifier: Apache-2.0
#include "runtime/agents/intake.hpp"

#include <cstring>
#include <utility>

#include "base/assert.hpp"
#include "runtime/agents/frames.hpp"

namespace lockstep {
namespace {

void copy(std::byte* to, std::span<const std::byte> from) {
  if (!from.empty()) std::memcpy(to, from.data(), from.size());
}

}  // namespace

Intake::Intake(const Application& application, Routes routes, std::size_t max_payload_bytes)
    : application_(application),
      routes_(std::move(routes)),
      max_payload_bytes_(max_payload_bytes),
      scratch_(routes_.queries.empty() ? nullptr : std::make_unique<Unit[]>(max_payload_bytes / sizeof(Unit) + 1)) {
  LOCKSTEP_ASSERT((routes_.sequencer == nullptr) != (routes_.records == nullptr),
                  "records go to a sequencer or into a ring");
  if (routes_.sequencer != nullptr)
    LOCKSTEP_ASSERT(max_payload_bytes <= routes_.sequencer->max_payload_bytes(), "payloads would not fit a batch");
  else
    LOCKSTEP_ASSERT(sizeof(RecordHeader) + max_payload_bytes <= routes_.records->max_frame_bytes(),
                    "payloads would not fit the ring to the sequencer");
  for (const ByteRing* ring : routes_.queries)
    LOCKSTEP_ASSERT(sizeof(QueryFrame) + max_payload_bytes <= ring->max_frame_bytes(), "payloads would not fit a ring");
}

Admission Intake::submit(const InboundMessage& message, std::int64_t arrival_ns) {
  const Handler* const handler = application_.find(message.actor_type, message.message_type);
  if (handler == nullptr || handler->is_query()) return Admission::unknown_type;
  if (routes_.halted) return Admission::halted;
  if (message.payload.size() > max_payload_bytes_) return Admission::too_large;
  RecordHeader header;
  header.length = static_cast<std::uint32_t>(message.payload.size());
  header.actor_type = message.actor_type;
  header.message_type = message.message_type;
  header.key = message.key;
  header.session = message.session;
  header.request = message.request;
  header.ack_distance = message.ack_distance;
  header.timestamp_ns = arrival_ns;
  if (routes_.records != nullptr) return submit_to_ring(header, message.payload, *handler);

  std::byte* const at = routes_.sequencer->claim(message.payload.size());
  if (at == nullptr) return Admission::no_room;
  copy(at, message.payload);
  const std::span<const std::byte> payload{at, message.payload.size()};
  if (!handler->verify(payload)) return Admission::verification_failed;
  header.check = record_check(header, payload);
  routes_.sequencer->commit(header, arrival_ns);
  return Admission::accepted;
}

Admission Intake::submit_to_ring(const RecordHeader& header, std::span<const std::byte> payload,
                                 const Handler& handler) {
  const std::span<std::byte> frame = routes_.records->claim(sizeof(RecordHeader) + payload.size());
  if (frame.empty()) {
    routes_.records->publish();
    return Admission::no_room;
  }
  copy(frame.data() + sizeof(RecordHeader), payload);
  const std::span<const std::byte> aligned = frame.subspan(sizeof(RecordHeader));
  const bool valid = handler.verify(aligned);
  RecordHeader stamped = header;
  if (valid)
    stamped.check = record_check(stamped, aligned);
  else
    stamped.kind = void_record;
  std::memcpy(frame.data(), &stamped, sizeof stamped);
  return valid ? Admission::accepted : Admission::verification_failed;
}

Admission Intake::submit_session(RecordKind kind, std::uint64_t session, std::uint64_t route,
                                 std::span<const std::byte> payload, std::int64_t arrival_ns) {
  if (routes_.halted) return Admission::halted;
  RecordHeader header;
  header.kind = kind;
  header.length = static_cast<std::uint32_t>(payload.size());
  header.session = session;
  header.request = route;
  header.timestamp_ns = arrival_ns;
  header.check = record_check(header, payload);
  if (routes_.sequencer != nullptr) {
    std::byte* const at = routes_.sequencer->claim(payload.size());
    if (at == nullptr) return Admission::no_room;
    copy(at, payload);
    routes_.sequencer->commit(header, arrival_ns);
    return Admission::accepted;
  }
  const std::span<std::byte> frame = routes_.records->claim(sizeof header + payload.size());
  if (frame.empty()) {
    routes_.records->publish();
    return Admission::no_room;
  }
  std::memcpy(frame.data(), &header, sizeof header);
  copy(frame.data() + sizeof header, payload);
  return Admission::accepted;
}

Admission Intake::query(const InboundMessage& message) {
  const Handler* const handler = application_.find(message.actor_type, message.message_type);
  if (handler == nullptr || !handler->is_query()) return Admission::unknown_type;
  if (message.payload.size() > max_payload_bytes_) return Admission::too_large;
  auto* const aligned = reinterpret_cast<std::byte*>(scratch_.get());
  copy(aligned, message.payload);
  if (!handler->verify({aligned, message.payload.size()})) return Admission::verification_failed;

  const std::uint32_t executor = routes_.executor_of(routes_.context, {message.actor_type, 0, message.key});
  ByteRing& ring = *routes_.queries[executor];
  const std::span<std::byte> frame = ring.claim(sizeof(QueryFrame) + message.payload.size());
  if (frame.empty()) {
    ring.publish();
    return Admission::no_room;
  }
  QueryFrame header;
  header.route = message.session;
  header.request = message.request;
  header.key = message.key;
  header.actor_type = message.actor_type;
  header.message_type = message.message_type;
  header.length = static_cast<std::uint32_t>(message.payload.size());
  std::memcpy(frame.data(), &header, sizeof header);
  copy(frame.data() + sizeof header, message.payload);
  return Admission::accepted;
}

void Intake::flush() {
  if (routes_.records != nullptr) routes_.records->publish();
  for (ByteRing* ring : routes_.queries) ring->publish();
}

}  // namespace lockstep
