// SPDX-License-Identifier: Apache-2.0
#include "runtime/execution.hpp"

#include <bit>

namespace lockstep {
namespace {

constexpr std::size_t reply_ring_bytes = 4U << 20;
constexpr std::size_t query_ring_bytes = 1U << 20;

/// A mail ring must hold the longest message twice; four times lets a sender run ahead.
std::size_t mail_ring_bytes(const Genesis& genesis) {
  return std::bit_ceil(std::size_t{4} * effect_bytes(genesis.message_bytes));
}

}  // namespace

Execution::Execution(const Application& application, const Genesis& genesis, const Options& options)
    : application_(application),
      genesis_(genesis),
      options_(options),
      pool_({.slabs = options.slabs,
             .max_batch_bytes = options.max_batch_bytes,
             .executors = options.executors,
             .last_index = 0}),
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
    parts.observed = options.observed;
    parts.skips = options.skips;
    parts.breadcrumb = options.breadcrumbs != nullptr ? options.breadcrumbs + i : nullptr;
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

Checkpoint Execution::end(const BatchHeader& last) {
  std::vector<ShardDigests> shards(genesis_.shards);
  for (const auto& executor : executors_) executor->digest_shards(shards);
  return combine(last, genesis_digest(genesis_), shards);
}

}  // namespace lockstep
