// SPDX-License-Identifier: Apache-2.0
#include "runtime/execution.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <string>
#include <utility>
#include <vector>

namespace lockstep {
namespace {

constexpr std::size_t reply_ring_bytes = 4U << 20;
constexpr std::size_t query_ring_bytes = 1U << 20;

/// A mail ring must hold the longest message twice; four times lets a sender run ahead.
std::size_t mail_ring_bytes(const Genesis& genesis) {
  return std::bit_ceil(std::size_t{4} * effect_bytes(genesis.message_bytes));
}

/// More than this part of the host's memory is not taken for what has to be there before the first message.
constexpr std::uint64_t memory_share = 2;

std::uint64_t memory_of_host() {
  return static_cast<std::uint64_t>(::sysconf(_SC_PHYS_PAGES)) * static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
}

std::string gib(std::uint64_t bytes) {
  return fmt::format("{:.1f} GiB", static_cast<double>(bytes) / static_cast<double>(1ULL << 30U));
}

/// Takes the address space of all shards and mailboxes and gives it back: whether there is enough depends on limits,
/// overcommitment and what lies in the process already.
Result<void> try_address_space(const Genesis& genesis, std::uint32_t executors) {
  const std::uint64_t shard_bytes = Shard::reserved_bytes(genesis);
  const std::uint64_t mail_bytes = 2 * Mailbox::reserved_bytes(genesis);
  std::vector<Region> held;
  for (std::uint64_t i = 0; i != std::uint64_t{genesis.shards} + executors; ++i) {
    auto region = Region::reserve(i < genesis.shards ? shard_bytes : mail_bytes, "shards and mail");
    if (!region)
      return fail(
          ErrorCode::full,
          fmt::format("{} shards ([genesis]) on {} executors ([threads]) need {} of address space, of which next "
                      "to nothing becomes memory, but this host gives {}; begin with fewer shards, raise "
                      "`ulimit -v`, or set vm.overcommit_memory to 0 or 1",
                      genesis.shards, executors, gib(genesis.shards * shard_bytes + executors * mail_bytes),
                      gib(std::min<std::uint64_t>(i, genesis.shards) * shard_bytes +
                          (i < genesis.shards ? 0 : i - genesis.shards) * mail_bytes)));
    held.push_back(std::move(*region));
  }
  return {};
}

}  // namespace

std::uint64_t Execution::memory_bytes(const Application& application, const Genesis& genesis, const Options& options) {
  const std::uint64_t executors = options.executors;
  std::uint64_t bytes = std::uint64_t{options.slabs} * options.max_batch_bytes;
  bytes += executors * options.perimeters * (reply_ring_bytes + query_ring_bytes);
  if (application.has_sends()) bytes += executors * (executors - 1) * mail_ring_bytes(genesis);
  return bytes;
}

Result<void> Execution::require_room(const Application& application, const Genesis& genesis, const Options& options) {
  const std::uint64_t bytes = memory_bytes(application, genesis, options);
  if (bytes > memory_of_host() / memory_share)
    return fail(
        ErrorCode::usage,
        fmt::format("{} executors and {} perimeters ([threads]) with {} batches of {} bytes ([batches]) take {} "
                    "of memory for batches and rings alone, and this host has {}; each executor has rings to "
                    "each perimeter and to each other executor, so fewer of them take much less",
                    options.executors, options.perimeters, options.slabs, options.max_batch_bytes, gib(bytes),
                    gib(memory_of_host())));
  return try_address_space(genesis, options.executors);
}

Execution::Execution(const Application& application, const Genesis& genesis, const Options& options)
    : application_(application),
      genesis_(genesis),
      options_(options),
      pool_({.slabs = options.slabs,
             .max_batch_bytes = options.max_batch_bytes,
             .executors = options.executors,
             .last_index = options.last_index}),
      board_(genesis.shards, options.executors, genesis_digest(genesis)),
      due_(options.executors) {
  if (options.executors > 1 && application.has_sends()) mail_.emplace(options.executors, mail_ring_bytes(genesis));
  for (std::uint32_t i = 0; i < options.executors * options.perimeters; ++i) {
    replies_.push_back(std::make_unique<ByteRing>(reply_ring_bytes));
    queries_.push_back(std::make_unique<ByteRing>(query_ring_bytes));
  }
  for (std::uint32_t i = 0; i < options.executors; ++i) {
    Executor::Options parts;
    parts.application = &application_;
    parts.genesis = genesis_;
    parts.index = i;
    parts.executors = options.executors;
    parts.mail = mail_ ? &*mail_ : nullptr;
    for (std::uint32_t p = 0; p < options.perimeters; ++p) {
      parts.replies.push_back(&replies(i, p));
      parts.queries.push_back(&queries(i, p));
    }
    parts.board = &board_;
    parts.due = &due_[i];
    parts.skips = options.skips;
    parts.breadcrumb = options.breadcrumbs != nullptr ? options.breadcrumbs + i : nullptr;
    if (options.sweep.quota_bytes != 0) {
      sweeps_.push_back(std::make_unique<ShardSweep>(snapshots_, options.sweep));
      parts.sweep = sweeps_.back().get();
    }
    executors_.push_back(std::make_unique<Executor>(parts));
    agents_.push_back(std::make_unique<ExecutorAgent>(*executors_.back(), pool_, i));
  }
}

void Execution::discard_replies(std::uint32_t perimeter) {
  for (std::uint32_t i = 0; i < options_.executors; ++i) {
    ByteRing& ring = replies(i, perimeter);
    while (!ring.peek().empty()) ring.release();
    ring.flush();
  }
}

Result<void> Execution::restore(SnapshotReader& snapshot) {
  if (snapshot.header().shard_count != genesis_.shards || snapshot.header().index != options_.last_index)
    return fail(ErrorCode::incompatible, fmt::format("{} is of {} shards and batch {}, and not of {} and batch {}",
                                                     snapshot.path(), snapshot.header().shard_count,
                                                     snapshot.header().index, genesis_.shards, options_.last_index));
  std::size_t next = 0;
  for (std::uint32_t number = 0; number < genesis_.shards; ++number) {
    Executor& executor = *executors_[executor_of(number, options_.executors)];
    executor.restore_effects(number, snapshot.shards()[number].effects);
    for (std::uint64_t i = 0; i < snapshot.shards()[number].arenas; ++i) {
      const SnapshotArena& arena = snapshot.arenas()[next++];
      const auto fill = [&](std::span<std::byte> image) { return snapshot.read_image(image); };
      auto restored = executor.restore_arena(number, arena.actor_type, arena.actor_key, arena.image_bytes, fill);
      if (!restored)
        return fail(restored.error().code, fmt::format("{}: {}", snapshot.path(), restored.error().message));
    }
  }
  const HistoryPosition position = position_of(snapshot.header());
  for (const auto& executor : executors_) executor->resume(position);
  const Checkpoint restored = end(batch_at(position));
  if (restored.root == snapshot.header().root && restored.effects == snapshot.header().effects) return {};
  return fail(ErrorCode::diverged, fmt::format("{}: restored, its state has root {} instead of {}", snapshot.path(),
                                               restored.root.hex(), snapshot.header().root.hex()));
}

std::map<std::uint64_t, std::int64_t> Execution::sessions() {
  std::map<std::uint64_t, std::int64_t> all;
  for (const auto& executor : executors_) {
    executor->for_each_session([&](std::uint64_t number, std::int64_t last_activity_ns) {
      std::int64_t& latest = all.try_emplace(number, last_activity_ns).first->second;
      latest = std::max(latest, last_activity_ns);
    });
  }
  return all;
}

Checkpoint Execution::end(const BatchHeader& last) {
  std::vector<ShardDigests> shards(genesis_.shards);
  for (const auto& executor : executors_) executor->digest_shards(shards);
  return combine(last, genesis_digest(genesis_), shards);
}

}  // namespace lockstep
