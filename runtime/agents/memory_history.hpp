// SPDX-License-Identifier: Apache-2.0
#pragma once

/// MemoryHistory: a history in memory, batch by batch, sealed as the sequencer seals (seq, stamps, checks, chain): what
/// the test kit and tests run and run again. It keeps every batch. One thread.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "journal/batch.hpp"
#include "lockstep/address.hpp"
#include "runtime/agents/genesis.hpp"

namespace lockstep {

class MemoryHistory {
 public:
  /// Begins with a batch that holds the genesis record, stamped `time_ns`.
  MemoryHistory(const Genesis& genesis, std::uint64_t schema_id, std::int64_t time_ns);

  /// What to stamp and pack; `target.type` and `message_type` are ids.
  struct Message {
    Address target = {};
    std::uint32_t message_type = 0;
    std::uint64_t session = 0;
    std::uint64_t request = 0;
    std::uint32_t ack_distance = 0;
  };
  /// Adds a record to the open batch, stamped `time_ns` or, if later, the last stamp.
  void add(const Message& message, std::span<const std::byte> payload, std::int64_t time_ns);
  /// Adds the records of a session's life; `route` is the connection that speaks.
  /// Returns the number of a new session; `resume` is one to go on with instead, then returned.
  std::uint64_t add_session_open(std::uint64_t secret, std::uint64_t route, std::int64_t time_ns,
                                 std::uint64_t resume = 0);
  /// As a goodbye over `route`; 0 says that it expired.
  void add_session_close(std::uint64_t session, std::uint64_t route, std::int64_t time_ns);
  /// Seals the open batch; without records it is a tick at `time_ns`.
  BatchView seal(std::int64_t time_ns);

  [[nodiscard]] std::size_t size() const { return batches_.size(); }
  /// Batch `i`, counted from 0; stays where it is.
  [[nodiscard]] BatchView batch(std::size_t i) const;
  [[nodiscard]] std::uint64_t last_seq() const { return seq_; }
  [[nodiscard]] const Genesis& genesis() const { return genesis_; }

 private:
  struct AlignedBytes {
    explicit AlignedBytes(std::span<const std::byte> from);
    [[nodiscard]] std::span<const std::byte> bytes() const;
    std::unique_ptr<std::uint64_t[]> words;  // operator new aligns to 16
    std::size_t size;
  };
  struct Sealed {
    BatchHeader header;
    AlignedBytes payload;
  };

  void append(RecordHeader header, std::span<const std::byte> payload, std::int64_t time_ns);

  Genesis genesis_;
  std::uint64_t schema_id_;
  std::uint64_t seq_ = 0;
  std::int64_t time_ns_ = 0;
  std::int64_t first_time_ns_ = 0;
  std::uint32_t open_records_ = 0;
  std::vector<std::byte> open_;
  std::vector<std::unique_ptr<Sealed>> batches_;
};

}  // namespace lockstep
