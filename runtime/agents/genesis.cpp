// SPDX-License-Identifier: Apache-2.0
#include "runtime/agents/genesis.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "control_generated.h"
#include "lockstep/arena.hpp"
#include "lockstep/effects.hpp"
#include "lockstep/message.hpp"

namespace lockstep {
namespace {

/// Refuses `value` outside [low, high].
template <class T>
Result<void> in_range(const char* field, T value, T low, T high) {
  if (value >= low && value <= high) return {};
  return fail(ErrorCode::usage, fmt::format("genesis: {} is {}, but must be {} to {}", field, value, low, high));
}

Result<void> multiple_of(const char* field, std::uint64_t value, std::uint64_t unit) {
  if (value % unit == 0) return {};
  return fail(ErrorCode::usage, fmt::format("genesis: {} is {}, but must be a multiple of {}", field, value, unit));
}

}  // namespace

Result<void> validate(const Genesis& genesis) {
  const Result<void> checks[] = {
      in_range("shards", genesis.shards, 1U, 4096U),
      in_range("max_rounds", genesis.max_rounds, 1U, 1U << 20U),
      in_range<std::uint64_t>("checkpoint_interval", genesis.checkpoint_interval, 1, 1ULL << 40U),
      in_range("handler_effects", genesis.handler_effects, 1U, 1U << 20U),
      in_range("message_bytes", genesis.message_bytes, 64U, 64U << 20U),
      in_range("handler_effect_bytes", genesis.handler_effect_bytes,
               static_cast<std::uint32_t>(effect_bytes(genesis.message_bytes)), 1U << 30U),
      in_range<std::size_t>("handler_write_bytes", genesis.handler_write_bytes, WriteBarrier::min_log_bytes, 1U << 31U),
      in_range<std::uint64_t>("shard_effects", genesis.shard_effects, genesis.handler_effects, 1ULL << 32U),
      in_range<std::uint64_t>("shard_effect_bytes", genesis.shard_effect_bytes, genesis.handler_effect_bytes,
                              (1ULL << 40U) / std::max(genesis.shards, 1U)),
      in_range<std::uint64_t>("shard_memory_bytes", genesis.shard_memory_bytes, 1ULL << 20U, 1ULL << 46U),
      in_range<std::uint64_t>("shard_mail_bytes", genesis.shard_mail_bytes, 4096, 1ULL << 30U),
      in_range("reply_window", genesis.reply_window, 1U, 65'535U),
      in_range<std::int64_t>("session_expiry_ns", genesis.session_expiry_ns, 1, INT64_MAX),
      in_range<std::uint64_t>("shard_session_bytes", genesis.shard_session_bytes, 64U << 10U, 1ULL << 36U),
  };
  for (const Result<void>& check : checks) {
    if (!check) return check;
  }
  if (const auto whole = multiple_of("handler_write_bytes", genesis.handler_write_bytes, 16); !whole) return whole;
  return multiple_of("shard_session_bytes", genesis.shard_session_bytes, page_bytes);
}

std::vector<std::byte> encode(const Genesis& genesis) {
  flatbuffers::FlatBufferBuilder fbb;
  fbb.ForceDefaults(true);
  fbb.Finish(control::CreateGenesis(fbb, genesis.application, genesis.cluster_seed, genesis.shards, genesis.max_rounds,
                                    genesis.checkpoint_interval, genesis.handler_effects, genesis.handler_effect_bytes,
                                    genesis.message_bytes, genesis.handler_write_bytes, genesis.shard_effects,
                                    genesis.shard_effect_bytes, genesis.shard_memory_bytes, genesis.shard_mail_bytes,
                                    genesis.reply_window, genesis.session_expiry_ns, genesis.shard_session_bytes));
  const auto bytes = std::as_bytes(std::span(fbb.GetBufferPointer(), fbb.GetSize()));
  return {bytes.begin(), bytes.end()};
}

Result<Genesis> decode_genesis(std::span<const std::byte> payload) {
  if (!verify<control::Genesis>(payload)) {
    return fail(ErrorCode::corrupt, "genesis: the record is not a lockstep.control.Genesis");
  }
  const auto& read = decode<control::Genesis>(payload.data());
  const Genesis genesis{
      .application = read.application(),
      .cluster_seed = read.cluster_seed(),
      .shards = read.shards(),
      .max_rounds = read.max_rounds(),
      .checkpoint_interval = read.checkpoint_interval(),
      .handler_effects = read.handler_effects(),
      .handler_effect_bytes = read.handler_effect_bytes(),
      .message_bytes = read.message_bytes(),
      .handler_write_bytes = read.handler_write_bytes(),
      .shard_effects = read.shard_effects(),
      .shard_effect_bytes = read.shard_effect_bytes(),
      .shard_memory_bytes = read.shard_memory_bytes(),
      .shard_mail_bytes = read.shard_mail_bytes(),
      .reply_window = read.reply_window(),
      .session_expiry_ns = read.session_expiry_ns(),
      .shard_session_bytes = read.shard_session_bytes(),
  };
  if (const Result<void> valid = validate(genesis); !valid) return std::unexpected(valid.error());
  return genesis;
}

Digest genesis_digest(const Genesis& genesis) {
  return xxh3_128(encode(genesis));
}

}  // namespace lockstep
