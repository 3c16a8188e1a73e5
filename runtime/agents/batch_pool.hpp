// SPDX-License-Identifier: Apache-2.0
#pragma once

/// BatchPool: the fixed memory in which batches are packed, journaled and executed, without a copy in between. It is a
/// ring of slabs, batch N in slab N mod slabs, gated by cursors as a Disruptor gates its ring
/// (https://lmax-exchange.github.io/disruptor/disruptor.html): a slab is used again only when every reader has passed
/// the batch in it. When none is free the sequencer cannot open a batch, and that is the node's back-pressure.
///
///       sequencer fills N+1    journal           executors
///             │                  │                 │
///     ──┬─────▼──┬────────┬──────▼─┬────────┬──────▼─┬──
///       │  N + 1 │ N      │  N - 1 │  N - 2 │  N - 3 │      slab = [ payload, 4096-aligned | header beside ]
///     ──┴────────┴────────┴────────┴────────┴────────┴──
///             sealed = N    written = N - 2   committed = N - 3   executed[i] = N - 4
///
/// Cursors only grow: written <= sealed, executed[i] <= committed <= sealed. `committed` does not gate: with
/// durability=none it runs ahead of `written`.
///
/// One thread (the sequencer) calls can_open, payload, header and publish_sealed; any thread reads batches up to the
/// cursor it follows.

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/prefetch.hpp"
#include "journal/batch.hpp"
#include "runtime/agents/cursor.hpp"
#include "runtime/memory/region.hpp"

namespace lockstep {

class BatchPool {
 public:
  struct Options {
    std::uint32_t slabs = 64;                    ///< a power of two, at least 2
    std::uint32_t max_batch_bytes = 256 * 1024;  ///< payload of one batch; a multiple of 4096
    std::uint32_t executors = 1;
    std::uint64_t last_index = 0;  ///< the last batch of the recovered history; every cursor starts there
  };

  /// Takes all its memory, on huge pages where the host has them; throws std::bad_alloc when there is not enough.
  explicit BatchPool(const Options& options);
  BatchPool(const BatchPool&) = delete;
  BatchPool& operator=(const BatchPool&) = delete;

  [[nodiscard]] std::uint32_t max_batch_bytes() const { return options_.max_batch_bytes; }
  [[nodiscard]] std::uint32_t slabs() const { return options_.slabs; }
  [[nodiscard]] std::uint32_t executors() const { return options_.executors; }

  // The sequencer's side.

  /// Whether every reader has passed the batch whose slab batch `index` needs.
  [[nodiscard]] bool can_open(std::uint64_t index);
  /// The slab of batch `index`, for writing: max_batch_bytes from a multiple of 4096.
  [[nodiscard]] std::byte* payload(std::uint64_t index) { return slab(index); }
  [[nodiscard]] BatchHeader& header(std::uint64_t index) { return headers_[index & mask_]; }
  /// Whether a snapshot is to be taken at the end of batch `index`; set before it is handed over, like the batch
  /// itself.
  [[nodiscard]] bool& snapshot_wanted(std::uint64_t index) { return flags_[index & mask_].snapshot_wanted; }
  /// Takes the lines that a batch of one record fills back from the cores that read them a lap ago. Once a batch, for
  /// the one to come.
  void prefetch(std::uint64_t index) {
    prefetch_for_write(payload(index));
    prefetch_for_write(payload(index) + 64);
    prefetch_for_write(&header(index));
    prefetch_for_write(&header(index).prev_chain);
  }
  /// Hands batch `index` over to the readers; from here on nobody writes to it.
  void publish_sealed(std::uint64_t index) { sealed_.publish(index); }

  // The readers' side.

  /// A batch at or below sealed() that the caller has not released yet.
  [[nodiscard]] BatchView view(std::uint64_t index) const;
  /// All of the slab up to the journal's block size: the payload and its padding.
  [[nodiscard]] std::span<const std::byte> padded_payload(std::uint64_t index) const;

  [[nodiscard]] std::uint64_t sealed() const { return sealed_.read(); }
  /// Moved by the journal when it needs the slab no more.
  [[nodiscard]] Cursor& written() { return written_; }
  /// Moved by the journal when the batch may be executed and its replies may leave.
  [[nodiscard]] Cursor& committed() { return committed_; }
  /// Moved by executor `i` when it needs the slab no more.
  [[nodiscard]] Cursor& executed(std::uint32_t i) { return executed_[i]; }
  /// The slowest executor.
  [[nodiscard]] std::uint64_t executed_by_all() const;

 private:
  static constexpr std::size_t slab_alignment = 4096;

  [[nodiscard]] std::byte* slab(std::uint64_t index) const {
    return memory_.data() + (index & mask_) * options_.max_batch_bytes;
  }

  Options options_;
  std::uint64_t mask_;
  Region memory_;
  struct Flags {
    bool snapshot_wanted = false;
  };
  std::vector<BatchHeader> headers_;
  std::vector<Flags> flags_;  // what is about a batch and no part of it
  std::uint64_t gate_;        ///< the slowest reader as last seen; the sequencer's own
  Cursor sealed_;
  Cursor written_;
  Cursor committed_;
  std::vector<Cursor> executed_;
};

}  // namespace lockstep
