// SPDX-License-Identifier: Apache-2.0
#pragma once

/// Genesis: the configuration that state and effects depend on. It is the first record of every history
/// (RecordKind::genesis), so a journal carries its own, and no replica, replay or restart can run it under another.
/// Pure functions; any thread.

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/digest.hpp"
#include "base/error.hpp"

namespace lockstep {

struct Genesis {
  std::uint64_t application = 0;   ///< Application::digest()
  std::uint64_t cluster_seed = 1;  ///< keys random()

  std::uint32_t shards = 64;                 ///< hash(address) mod shards decides order; 1 to 4096
  std::uint32_t max_rounds = 64;             ///< of one batch; what is left is carried into the next
  std::uint64_t checkpoint_interval = 1024;  ///< sequence numbers between state roots

  std::uint32_t handler_effects = 1024;             ///< replies, sends and timers of one handler
  std::uint32_t handler_effect_bytes = 1U << 20U;   ///< of their headers and payloads
  std::uint32_t message_bytes = 256U << 10U;        ///< of one payload that an actor makes
  std::uint32_t handler_write_bytes = 4U << 20U;    ///< old bytes kept for one handler's undo
  std::uint64_t shard_effects = 1U << 18U;          ///< of all handlers of a shard in one batch
  std::uint64_t shard_effect_bytes = 64U << 20U;    ///< of their headers and payloads
  std::uint64_t shard_memory_bytes = 64ULL << 30U;  ///< sum of the capacities of a shard's arenas
  std::uint64_t shard_mail_bytes = 64U << 20U;      ///< mail that a shard may carry from one batch into the next

  std::uint32_t reply_window = 1024;                ///< how far back of its newest request a client may ask again
  std::int64_t session_expiry_ns = 60'000'000'000;  ///< of stamped time without a request
  std::uint64_t shard_session_bytes = 64U << 20U;   ///< a shard's part of all sessions: 1 KiB each, and kept answers

  friend bool operator==(const Genesis&, const Genesis&) = default;
};

/// What is wrong with the values, if anything: names the field and what it may be.
[[nodiscard]] Result<void> validate(const Genesis& genesis);

/// The payload of the genesis record: a FlatBuffer of lockstep.control.Genesis, the same bytes for equal values.
[[nodiscard]] std::vector<std::byte> encode(const Genesis& genesis);
/// Reads and validates a genesis record's payload.
[[nodiscard]] Result<Genesis> decode_genesis(std::span<const std::byte> payload);

/// XXH3-128 of encode(): compared between nodes, and part of every state root.
[[nodiscard]] Digest genesis_digest(const Genesis& genesis);

}  // namespace lockstep
