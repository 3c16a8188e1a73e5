// SPDX-License-Identifier: Apache-2.0
// Counts operator new while an executor runs a million messages: there is none. (The C++ runtime takes an exception's
// memory from malloc; a trap is no hot path.)
#include <doctest/doctest.h>

#include "journal/testing/heap_count.hpp"
#include "lockstep/actor.hpp"
#include "runtime/agents/executor.hpp"
#include "runtime/agents/memory_history.hpp"
#include "test_messages_generated.h"

namespace lockstep {
namespace {

using namespace testing;

/// Replies, sends, sets timers, now and then traps.
struct Busy {
  static constexpr auto name = "busy";
  static constexpr std::uint64_t arena_bytes = 65536;
  using Receives = lockstep::Receives<Deposit, Pass, Alarm>;
  using Sends = lockstep::Sends<Pass>;

  std::int64_t total = 0;
  TimerId timer = TimerId::none;

  void on(const Deposit& m, Context& cx) {
    total += m.amount();
    cx.log("account {} has {}", m.account(), total);
    cx.reply<Balance>(m.account(), total);
    if (m.account() % 4 == 0) cx.send<Pass>(ref<Busy>(m.account() / 4), 0U, m.account(), 0U);
    if (m.account() % 64 == 1) {
      cx.cancel(timer);
      timer = cx.after<Alarm>(std::chrono::hours(1), m.account());
    }
    if (m.account() % 256 == 255) static_cast<void>(Arena::current().allocate(1U << 20U));
  }
  void on(const Pass& m, Context& cx) { cx.reply<Done>(m.hops(), m.a(), m.b()); }
  void on(const Alarm&, Context&) {}
};

struct LineCounter final : LogSink {
  void write(std::string_view) override { ++count; }
  std::uint64_t count = 0;
};

TEST_CASE("an executor allocates nothing while it runs a million messages") {
  constexpr std::uint64_t per_batch = 1000;
  constexpr std::uint64_t batches = 50;
  constexpr std::uint64_t messages = 1'000'000;
  const Genesis genesis{
      .application = application<Busy>().digest(), .checkpoint_interval = 1024, .shard_memory_bytes = 1U << 30U};
  MemoryHistory history(genesis, 0, 0);
  MessageBuilder builder(4096);
  for (std::uint64_t i = 0; i < batches * per_batch; ++i) {
    history.add({.target = ref<Busy>(i % 100).address(),
                 .message_type = message_id<Deposit>,
                 .session = session_number(0, 0, 1)},
                builder.encode<Deposit>(i, 1), 0);
    if (i % per_batch == per_batch - 1) history.seal(0);
  }
  ByteRing replies(1U << 20U);
  CheckpointBoard board(genesis.shards, 1, genesis_digest(genesis));
  Executor executor({.application = &application<Busy>(), .genesis = genesis, .replies = {&replies}, .board = &board});
  LineCounter lines;
  executor.log_to(&lines);
  std::uint64_t while_running = 0;
  const auto run = [&](std::size_t i) {
    bool done = false;
    while (!done) {
      const std::uint64_t before = heap_count().allocations;
      done = executor.step(history.batch(i));
      while_running += heap_count().allocations - before;
      while (!replies.peek().empty()) replies.release();
    }
    while (board.poll()) continue;
  };
  for (std::size_t i = 0; i < history.size(); ++i) run(i);  // takes what it needs for good
  while_running = 0;
  const std::uint64_t before = executor.handlers_run();
  while (executor.handlers_run() - before < messages) {
    for (std::size_t i = 1; i < history.size(); ++i) run(i);
  }
  CHECK(while_running == 0);
  CHECK(executor.traps() > 0);
  CHECK(lines.count > messages / 2);
}

TEST_CASE("an executor allocates nothing while it admits, answers and forgets requests of sessions") {
  constexpr std::uint64_t sessions = 16;
  constexpr std::uint64_t per_batch = 1000;
  constexpr std::uint64_t batches = 60;
  const Genesis genesis{
      .application = application<Busy>().digest(), .checkpoint_interval = 1024, .shard_memory_bytes = 1U << 30U};
  MemoryHistory history(genesis, 0, 0);
  std::vector<std::uint64_t> numbers;
  numbers.reserve(sessions);
  for (std::uint64_t i = 0; i < sessions; ++i) {
    numbers.push_back(history.add_session_open(1, session_number(1, 0, 1 + static_cast<std::uint32_t>(i)), 0));
  }
  history.seal(0);
  MessageBuilder builder(4096);
  for (std::uint64_t i = 0; i < batches * per_batch; ++i) {
    const std::uint64_t n = i % 10 == 9 && i >= sessions ? i - sessions : i;  // a copy of the last now and then
    const std::uint64_t request = 1 + n / sessions;
    history.add({.target = ref<Busy>(n % 100).address(),
                 .message_type = message_id<Deposit>,
                 .session = numbers[n % sessions],
                 .request = request,
                 .ack_distance = static_cast<std::uint32_t>(std::min<std::uint64_t>(request, 40))},
                builder.encode<Deposit>(n % 1000, 1), 0);
    if (i % per_batch == per_batch - 1) history.seal(0);
  }
  ByteRing replies(1U << 20U);
  CheckpointBoard board(genesis.shards, 1, genesis_digest(genesis));
  Executor executor({.application = &application<Busy>(), .genesis = genesis, .replies = {&replies}, .board = &board});
  std::uint64_t answers = 0;
  std::uint64_t while_running = 0;
  for (std::size_t i = 0; i < history.size(); ++i) {
    bool done = false;
    while (!done) {
      const std::uint64_t before = heap_count().allocations;
      done = executor.step(history.batch(i));
      // The first half takes what it needs for good.
      if (i > history.size() / 2) while_running += heap_count().allocations - before;
      for (; !replies.peek().empty(); replies.release()) ++answers;
    }
    while (board.poll()) continue;
  }
  CHECK(while_running == 0);
  CHECK(answers >= batches * per_batch);
}

}  // namespace
}  // namespace lockstep
