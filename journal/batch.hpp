// SPDX-License-Identifier: Apache-2.0
#pragma once

/// Batch: an immutable run of consecutive records, sealed by the sequencer; the unit of journal write, of replication
/// and of execution. Its header is logical: the same on every replica and in every copy of a history.
/// Where and when a node stored it stands in the journal's own block header, never here.
///
///      0       8           16           24          32            36              40
///     +-------+-----------+------------+-----------+-------------+---------------+-----------+
///     | index | first seq | first time | last time | record count| payload bytes | schema id |
///     +-------+-----------+------------+-----------+-------------+---------------+-----------+
///     | payload digest 16 | previous chain 16      | chain 16                    | zero 32   |
///     +-------------------+------------------------+-----------------------------+-----------+
///      48                  64                       80                            96         128
///
/// The payload is the records, one behind the other (journal/record.hpp). A batch without records is a tick: it brings
/// time only, and its two times are equal. Any thread; pure functions.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "base/digest.hpp"
#include "journal/record.hpp"

namespace lockstep {

struct BatchHeader {
  std::uint64_t index = 0;         ///< N in state(N): 1, 2, 3, … without gaps
  std::uint64_t first_seq = 0;     ///< seq of the first record; of the next record to come when there is none
  std::int64_t first_time_ns = 0;  ///< stamp of the first record, or of the tick
  std::int64_t last_time_ns = 0;   ///< stamp of the last record, or of the tick
  std::uint32_t record_count = 0;
  std::uint32_t payload_bytes = 0;
  std::uint64_t schema_id = 0;  ///< XXH3-64 of the application's .bfbs
  Digest payload_digest;        ///< XXH3-128 of the payload
  Digest prev_chain;            ///< chain of batch index - 1; zero before the first
  Digest chain;                 ///< batch_chain(*this)
  std::uint64_t zero[4] = {};
};
static_assert(sizeof(BatchHeader) == 128 && alignof(BatchHeader) == 8);
static_assert(offsetof(BatchHeader, record_count) == 32 && offsetof(BatchHeader, schema_id) == 40);
static_assert(offsetof(BatchHeader, payload_digest) == 48 && offsetof(BatchHeader, chain) == 80);

/// The one formula of the chain: XXH3-128 over previous chain, first seq, both times, schema, record count,
/// payload bytes and payload digest. Equal chain at N means equal history up to N.
[[nodiscard]] Digest batch_chain(const BatchHeader& header);

/// Where a piece of history ends: what the next batch must follow from.
struct HistoryPosition {
  std::uint64_t index = 0;   ///< of the last batch; 0 before the first
  std::uint64_t seq = 0;     ///< of the last record
  std::int64_t time_ns = 0;  ///< last stamp
  Digest chain;

  friend bool operator==(const HistoryPosition&, const HistoryPosition&) = default;
};

/// The position behind a batch.
[[nodiscard]] HistoryPosition position_after(const BatchHeader& batch);
/// A batch without records at whose end a position is: what the next one follows from when the last is not at hand.
[[nodiscard]] BatchHeader batch_at(const HistoryPosition& position);

/// What goes into a batch: records that follow one another, stamped from `first_time_ns` to `last_time_ns`.
struct BatchContent {
  std::span<const std::byte> payload;
  std::uint32_t record_count = 0;
  std::int64_t first_time_ns = 0;
  std::int64_t last_time_ns = 0;
  std::uint64_t schema_id = 0;
};
/// The header of the batch that follows `after`.
[[nodiscard]] BatchHeader seal_batch(const HistoryPosition& after, const BatchContent& content);

/// A batch somewhere in memory; valid as long as its owner says (a slab until every cursor has passed it, a reader
/// until its next call).
struct BatchView {
  const BatchHeader* header = nullptr;
  std::span<const std::byte> payload;
};

/// One record of a batch.
struct RecordView {
  const RecordHeader* header = nullptr;
  std::span<const std::byte> payload;
};

/// Walks a batch's records in order. It trusts nothing: a record that does not fit ends the walk with `damaged()`.
class RecordCursor {
 public:
  explicit RecordCursor(std::span<const std::byte> batch_payload) : rest_(batch_payload) {}
  [[nodiscard]] std::optional<RecordView> next() {
    if (rest_.empty()) return std::nullopt;
    const auto* const header = reinterpret_cast<const RecordHeader*>(rest_.data());
    if (rest_.size() < sizeof(RecordHeader) || rest_.size() < record_bytes(header->length)) {
      damaged_ = true;
      return std::nullopt;
    }
    const RecordView record{header, rest_.subspan(sizeof(RecordHeader), header->length)};
    rest_ = rest_.subspan(record_bytes(header->length));
    return record;
  }
  [[nodiscard]] bool damaged() const { return damaged_; }

 private:
  std::span<const std::byte> rest_;
  bool damaged_ = false;
};

/// Checks a batch against its own header: digest, chain, record count, seq without gaps, stamps in order and in range,
/// each record's check. Returns what is wrong, or nothing.
[[nodiscard]] std::optional<const char*> batch_defect(const BatchView& batch);

}  // namespace lockstep
