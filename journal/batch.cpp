// SPDX-License-Identifier: Apache-2.0
#include "journal/batch.hpp"

namespace lockstep {
namespace {

struct ChainInput {
  Digest prev_chain;
  std::uint64_t first_seq;
  std::int64_t first_time_ns;
  std::int64_t last_time_ns;
  std::uint64_t schema_id;
  std::uint32_t record_count;
  std::uint32_t payload_bytes;
  Digest payload_digest;
};
static_assert(sizeof(ChainInput) == 72);

}  // namespace

Digest batch_chain(const BatchHeader& header) {
  const ChainInput input{header.prev_chain, header.first_seq,    header.first_time_ns, header.last_time_ns,
                         header.schema_id,  header.record_count, header.payload_bytes, header.payload_digest};
  return xxh3_128(object_bytes(input));
}

HistoryPosition position_after(const BatchHeader& batch) {
  return {batch.index, batch.first_seq + batch.record_count - 1, batch.last_time_ns, batch.chain};
}

BatchHeader seal_batch(const HistoryPosition& after, const BatchContent& content) {
  BatchHeader header{.index = after.index + 1,
                     .first_seq = after.seq + 1,
                     .first_time_ns = content.first_time_ns,
                     .last_time_ns = content.last_time_ns,
                     .record_count = content.record_count,
                     .payload_bytes = static_cast<std::uint32_t>(content.payload.size()),
                     .schema_id = content.schema_id,
                     .payload_digest = xxh3_128(content.payload),
                     .prev_chain = after.chain,
                     .chain = {}};
  header.chain = batch_chain(header);
  return header;
}

BatchHeader batch_at(const HistoryPosition& position) {
  BatchHeader header;
  header.index = position.index;
  header.first_seq = position.seq + 1;
  header.first_time_ns = header.last_time_ns = position.time_ns;
  header.chain = position.chain;
  return header;
}

std::optional<const char*> batch_defect(const BatchView& batch) {
  const BatchHeader& header = *batch.header;
  if (header.payload_bytes != batch.payload.size()) return "payload length differs from the batch header";
  if (header.payload_digest != xxh3_128(batch.payload)) return "payload digest differs";
  if (header.chain != batch_chain(header)) return "chain differs from the batch header's fields";
  if (header.last_time_ns < header.first_time_ns) return "last time precedes first time";
  RecordCursor cursor(batch.payload);
  std::uint32_t count = 0;
  std::int64_t time_ns = header.first_time_ns;
  while (const auto record = cursor.next()) {
    if (record->header->seq != header.first_seq + count) return "sequence numbers have a gap";
    if (record->header->timestamp_ns < time_ns || record->header->timestamp_ns > header.last_time_ns)
      return "a record's stamp runs back or leaves the batch's times";
    if (record->header->check != record_check(*record->header, record->payload)) return "a record's check differs";
    time_ns = record->header->timestamp_ns;
    ++count;
  }
  if (cursor.damaged()) return "a record does not fit into the payload";
  if (count != header.record_count) return "record count differs from the batch header";
  return std::nullopt;
}

}  // namespace lockstep
