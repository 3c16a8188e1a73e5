// SPDX-License-Identifier: Apache-2.0
#include "runtime/agents/memory_history.hpp"

#include <algorithm>
#include <cstring>

#include "control_generated.h"

namespace lockstep {

MemoryHistory::AlignedBytes::AlignedBytes(std::span<const std::byte> from)
    : words(std::make_unique<std::uint64_t[]>((from.size() + 7) / 8)), size(from.size()) {
  if (!from.empty()) std::memcpy(words.get(), from.data(), from.size());
}

std::span<const std::byte> MemoryHistory::AlignedBytes::bytes() const {
  return {reinterpret_cast<const std::byte*>(words.get()), size};
}

MemoryHistory::MemoryHistory(const Genesis& genesis, std::uint64_t schema_id, std::int64_t time_ns)
    : genesis_(genesis), schema_id_(schema_id), time_ns_(time_ns) {
  append({.kind = RecordKind::genesis}, encode(genesis), time_ns);
  seal(time_ns);
}

void MemoryHistory::add(const Message& message, std::span<const std::byte> payload, std::int64_t time_ns) {
  append({.actor_type = message.target.type,
          .message_type = message.message_type,
          .key = message.target.key,
          .session = message.session,
          .request = message.request,
          .ack_distance = message.ack_distance},
         payload, time_ns);
}

std::uint64_t MemoryHistory::add_session_open(std::uint64_t secret, std::uint64_t route, std::int64_t time_ns,
                                              std::uint64_t resume) {
  flatbuffers::FlatBufferBuilder fbb;
  fbb.Finish(control::CreateSessionOpen(fbb, secret));
  append({.kind = RecordKind::session_open, .session = resume, .request = route},
         std::as_bytes(std::span(fbb.GetBufferPointer(), fbb.GetSize())), time_ns);
  return resume != 0 ? resume : seq_;
}

void MemoryHistory::add_session_close(std::uint64_t session, std::uint64_t route, std::int64_t time_ns) {
  flatbuffers::FlatBufferBuilder fbb;
  fbb.Finish(control::CreateSessionClose(
      fbb, route != 0 ? control::CloseReason::goodbye : control::CloseReason::expired, time_ns));
  append({.kind = RecordKind::session_close, .session = session, .request = route},
         std::as_bytes(std::span(fbb.GetBufferPointer(), fbb.GetSize())), time_ns);
}

void MemoryHistory::append(RecordHeader header, std::span<const std::byte> payload, std::int64_t time_ns) {
  time_ns_ = std::max(time_ns_, time_ns);
  if (open_records_++ == 0) first_time_ns_ = time_ns_;
  header.length = static_cast<std::uint32_t>(payload.size());
  header.seq = ++seq_;
  header.timestamp_ns = time_ns_;
  header.check = record_check(header, payload);
  const std::size_t at = open_.size();
  open_.resize(at + record_bytes(payload.size()));
  std::memcpy(open_.data() + at, &header, sizeof header);
  if (!payload.empty()) std::memcpy(open_.data() + at + sizeof header, payload.data(), payload.size());
}

BatchView MemoryHistory::seal(std::int64_t time_ns) {
  if (open_records_ == 0) first_time_ns_ = time_ns_ = std::max(time_ns_, time_ns);
  const HistoryPosition after = batches_.empty() ? HistoryPosition{} : position_after(batches_.back()->header);
  const BatchHeader header = seal_batch(after, {.payload = open_,
                                                .record_count = open_records_,
                                                .first_time_ns = first_time_ns_,
                                                .last_time_ns = time_ns_,
                                                .schema_id = schema_id_});
  batches_.push_back(std::make_unique<Sealed>(header, AlignedBytes(open_)));
  open_.clear();
  open_records_ = 0;
  return batch(batches_.size() - 1);
}

BatchView MemoryHistory::batch(std::size_t i) const {
  return {&batches_[i]->header, batches_[i]->payload.bytes()};
}

}  // namespace lockstep
