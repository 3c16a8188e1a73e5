// SPDX-License-Identifier: Apache-2.0
#pragma once

/// ExecutorAgent: feeds committed batches of the pool to an executor, and lets it answer queries in between. It moves
/// its `executed` cursor when it needs a batch's slab no more. One thread.

#include <cstdint>

#include "runtime/agents/agent.hpp"
#include "runtime/agents/batch_pool.hpp"
#include "runtime/agents/executor.hpp"

namespace lockstep {

class ExecutorAgent final : public Agent {
 public:
  ExecutorAgent(Executor& executor, BatchPool& pool, std::uint32_t index)
      : executor_(executor), pool_(pool), index_(index), executed_(pool.executed(index).read()) {}

  [[nodiscard]] std::string_view name() const override { return "executor"; }
  int do_work(const Now& now) override;

 private:
  /// Batches of one turn, so that agents that share the thread get their turns.
  static constexpr int batches_per_turn = 4;

  Executor& executor_;
  BatchPool& pool_;
  std::uint32_t index_;
  std::uint64_t executed_;
};

}  // namespace lockstep
