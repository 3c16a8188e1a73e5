// SPDX-License-Identifier: Apache-2.0
#pragma once

/// BatchMaker: valid batches that follow one another, with seeded records in them, in buffers the journal can take.

#include <random>
#include <vector>

#include "journal/aligned_buffer.hpp"
#include "journal/batch.hpp"
#include "journal/block.hpp"

namespace lockstep {

/// A batch with its memory.
struct OwnedBatch {
  BatchHeader header;
  AlignedBuffer buffer;
  [[nodiscard]] BatchView view() const { return {&header, buffer.span().first(header.payload_bytes)}; }
};

class BatchMaker {
 public:
  explicit BatchMaker(std::uint64_t seed, const HistoryPosition& after = {}, std::uint64_t schema_id = 0)
      : random_(seed), position_(after), schema_id_(schema_id) {}

  /// A batch of one record for each length given.
  [[nodiscard]] OwnedBatch make(const std::vector<std::uint32_t>& lengths) {
    OwnedBatch batch;
    std::size_t bytes = 0;
    for (const std::uint32_t length : lengths) bytes += record_bytes(length);
    batch.buffer = AlignedBuffer(bytes);
    const std::int64_t first_time_ns = position_.time_ns + 10;
    const BatchContent content{.payload = batch.buffer.span().first(bytes),
                               .record_count = static_cast<std::uint32_t>(lengths.size()),
                               .first_time_ns = first_time_ns,
                               .last_time_ns = first_time_ns + static_cast<std::int64_t>(lengths.size()),
                               .schema_id = schema_id_};
    std::size_t at = 0;
    for (std::size_t i = 0; i < lengths.size(); ++i)
      at += write_record(position_.seq + 1 + i, first_time_ns + static_cast<std::int64_t>(i), lengths[i],
                         batch.buffer.span(), at);
    pad_for_journal(batch.buffer.span(), bytes);
    batch.header = seal_batch(position_, content);
    position_ = position_after(batch.header);
    return batch;
  }

  /// A batch of up to `max_records` records of up to `max_length` bytes; sometimes a tick.
  [[nodiscard]] OwnedBatch make_random(std::uint32_t max_records, std::uint32_t max_length) {
    std::vector<std::uint32_t> lengths(random_() % (max_records + 1));
    for (std::uint32_t& length : lengths) length = static_cast<std::uint32_t>(random_() % (max_length + 1));
    return make(lengths);
  }

  [[nodiscard]] const HistoryPosition& position() const { return position_; }

 private:
  std::size_t write_record(std::uint64_t seq, std::int64_t time_ns, std::uint32_t length, std::span<std::byte> buffer,
                           std::size_t at) {
    RecordHeader record;
    record.length = length;
    record.key = random_();
    record.seq = seq;
    record.timestamp_ns = time_ns;
    const auto payload = buffer.subspan(at + sizeof record, length);
    for (std::byte& byte : payload) byte = static_cast<std::byte>(random_());
    record.check = record_check(record, payload);
    std::memcpy(buffer.data() + at, &record, sizeof record);
    return record_bytes(length);
  }

  std::mt19937_64 random_;
  HistoryPosition position_;
  std::uint64_t schema_id_;
};

}  // namespace lockstep
