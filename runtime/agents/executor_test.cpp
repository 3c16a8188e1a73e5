// SPDX-License-Identifier: Apache-2.0
#include "runtime/agents/executor.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <string>
#include <tuple>
#include <vector>

#include "runtime/agents/frames.hpp"
#include "runtime/agents/replica.hpp"
#include "runtime/agents/testing/workload.hpp"

namespace lockstep {
namespace {

using namespace testing;

constexpr std::size_t tiny_ring_bytes = 1024;  // two of the workload's longest messages

/// A reply as data that can be compared and sorted.
struct Reply {
  std::uint64_t request = 0;
  Outcome outcome = Outcome::reply;
  std::uint32_t detail = 0;
  std::uint32_t message_type = 0;
  std::string payload;
  friend auto operator<=>(const Reply&, const Reply&) = default;
};

/// A replica whose replies are collected.
struct Run {
  explicit Run(std::uint32_t executors, const Genesis& genesis = workload_genesis(),
               std::size_t mail_bytes = tiny_ring_bytes)
      : replica(workload(), genesis, {.executors = executors, .mail_ring_bytes = mail_bytes, .replies = &ring}) {}

  void run(const BatchView& batch) {
    replica.run(batch, [this] { drain(); });
    drain();
  }
  void run(const MemoryHistory& history) {
    for (std::size_t i = 0; i < history.size(); ++i) run(history.batch(i));
  }
  void drain() {
    for (auto bytes = ring.peek(); !bytes.empty(); bytes = ring.peek()) {
      const auto& frame = *reinterpret_cast<const ReplyFrame*>(bytes.data());
      replies.push_back({frame.request, frame.outcome, frame.detail, frame.message_type,
                         std::string(reinterpret_cast<const char*>(&frame + 1), frame.length)});
      ring.release();
    }
  }
  /// Shards do not order their replies among each other, so neither does a comparison.
  [[nodiscard]] std::vector<Reply> sorted_replies() {
    std::ranges::sort(replies);
    return replies;
  }
  [[nodiscard]] TrapKind last_trap() const {
    if (replies.empty() || replies.back().outcome != Outcome::trapped) return TrapKind::none;
    return static_cast<TrapKind>(replies.back().detail);
  }
  /// The last reply as an M.
  template <class M>
  [[nodiscard]] const M& last() const {
    REQUIRE(!replies.empty());
    REQUIRE(replies.back().message_type == message_id<M>);
    std::memcpy(aligned, replies.back().payload.data(), replies.back().payload.size());
    return decode<M>(aligned);
  }

  alignas(16) mutable std::byte aligned[1024];
  ByteRing ring{1024};
  Replica replica;
  std::vector<Reply> replies;
};

TEST_CASE("state, effects and replies do not depend on how many executors there are") {
  for (std::uint64_t seed = 1; seed <= 6; ++seed) {
    CAPTURE(seed);
    Workload load(seed);
    Run one(1);
    one.run(load.history().batch(0));
    for (int i = 0; i < 120; ++i) one.run(load.random_batch());
    REQUIRE(one.replica.checkpoints().size() > 10);
    for (const std::uint32_t executors : {2U, 3U, 4U, 8U}) {
      CAPTURE(executors);
      Run several(executors);
      several.run(load.history());
      CHECK(several.replica.end() == one.replica.end());
      CHECK(several.replica.checkpoints() == one.replica.checkpoints());
      CHECK(several.sorted_replies() == one.sorted_replies());
      CHECK(several.replica.next_due_ns() == one.replica.next_due_ns());
    }
  }
}

/// One batch with one request, on a fresh worker that has answered once.
struct Single {
  explicit Single(const Genesis& genesis = workload_genesis()) : run(1, genesis) {
    run.run(load.history().batch(0));
    ask(Op::answer);
    before = run.replica.end();
  }
  void ask(Op op, std::uint64_t a = 0, std::uint64_t b = 0, std::string_view text = "text") {
    load.add(op, 1, a, b, text);
    run.run(load.seal());
  }
  [[nodiscard]] bool state_is_as_before() { return run.replica.end().root == before.root; }

  Workload load{1};
  Run run;
  Checkpoint before;
};

TEST_CASE("a handler that throws after changing state and sending leaves nothing but its trap") {
  Single test;
  test.ask(Op::fail, 1, 2);
  CHECK(test.run.last_trap() == TrapKind::exception);
  CHECK(test.state_is_as_before());
  CHECK(test.run.replica.end().effects != test.before.effects);
  CHECK(test.run.replica.next_due_ns() == NextDue::nothing_due);
  CHECK(test.run.replies.size() == 2);
}

TEST_CASE("a handler that exhausts its arena is undone, and the arena is usable again") {
  Single test;
  test.ask(Op::exhaust);
  CHECK(test.run.last_trap() == TrapKind::arena_exhausted);
  CHECK(test.state_is_as_before());
  test.ask(Op::remember, 0, 0, std::string(2000, 'y'));
  CHECK(test.run.last<Done>().a() == 2000);
}

TEST_CASE("a handler that floods is stopped by its limit and sends nothing") {
  Single test;
  test.ask(Op::flood);
  CHECK(test.run.last_trap() == TrapKind::too_many_effects);
  CHECK(test.state_is_as_before());
}

TEST_CASE("a handler that catches its trap and goes on is undone all the same") {
  Single test;
  test.ask(Op::swallow);
  CHECK(test.run.last_trap() == TrapKind::too_many_effects);
  CHECK(test.state_is_as_before());
}

TEST_CASE("a reply longer than a message may be traps") {
  Single test;
  test.ask(Op::reply_long, 100);
  CHECK(test.run.last_trap() == TrapKind::none);
  test.before = test.run.replica.end();
  test.ask(Op::reply_long, 300);
  CHECK(test.run.last_trap() == TrapKind::effect_bytes);
  CHECK(test.state_is_as_before());
}

TEST_CASE("a message that the actor type does not declare to send traps") {
  Single test;
  test.ask(Op::undeclared);
  CHECK(test.run.last_trap() == TrapKind::undeclared_send);
  CHECK(test.state_is_as_before());
}

TEST_CASE("an actor whose first handler traps was never created") {
  Run run(1);
  Workload load(1);
  run.run(load.history().batch(0));
  const Digest empty = run.replica.end().root;
  load.add(Op::fail, 5, 0, 0);
  run.run(load.seal());
  CHECK(run.last_trap() == TrapKind::exception);
  CHECK(run.replica.end().root == empty);
  load.add(Op::answer, 5, 0, 0);
  run.run(load.seal());
  CHECK(run.last<Done>().a() == 2);  // start() and this
}

TEST_CASE("a message to an unknown actor type, or one it does not receive, traps") {
  Run run(1);
  Workload load(1);
  run.run(load.history().batch(0));
  const Digest empty = run.replica.end().root;
  MemoryHistory& history = load.history();
  MessageBuilder builder(1024);
  history.add({.target = {name_id("nobody"), 0, 1},
               .message_type = message_id<Do>,
               .session = session_number(0, 0, 1),
               .request = 1},
              builder.encode<Do>(0U, 0U, 0U, ""), 2000);
  run.run(history.seal(2000));
  CHECK(run.last_trap() == TrapKind::no_handler);
  history.add({.target = ref<Worker>(1).address(),
               .message_type = message_id<Deposit>,
               .session = session_number(0, 0, 1),
               .request = 2},
              builder.encode<Deposit>(0U, 0), 2000);
  run.run(history.seal(2000));
  CHECK(run.last_trap() == TrapKind::no_handler);
  history.add({.target = ref<Worker>(1).address(),
               .message_type = message_id<Look>,
               .session = session_number(0, 0, 1),
               .request = 3},
              builder.encode<Look>(0U), 2000);
  run.run(history.seal(2000));
  CHECK(run.last_trap() == TrapKind::no_handler);  // a query is not journaled
  CHECK(run.replica.end().root == empty);
  CHECK(run.replies.size() == 3);
}

TEST_CASE("a request that comes to nothing says so") {
  Single test;
  test.ask(Op::silent);
  CHECK(test.run.replies.back().outcome == Outcome::no_reply);
  CHECK(test.run.replies.back().request == 2);
}

TEST_CASE("the shard's budget of a batch stops what single limits do not") {
  Genesis genesis = workload_genesis();
  genesis.shard_effects = genesis.handler_effects;
  Single test(genesis);
  for (std::uint32_t i = 0; i <= genesis.shard_effects; ++i) test.load.add(Op::answer, 1, 0, 0);
  test.run.run(test.load.seal());
  CHECK(test.run.last_trap() == TrapKind::shard_budget);
  CHECK(test.run.replies[test.run.replies.size() - 2].outcome == Outcome::reply);
  test.ask(Op::answer);
  CHECK(test.run.replies.back().outcome == Outcome::reply);  // the next batch has its own
}

TEST_CASE("messages that go round for ever are carried over, batch after batch, with any number of executors") {
  Workload load(1);
  load.add(Op::pass, 1, 20, 5);
  load.seal();
  for (int i = 0; i < 5; ++i) load.seal();
  const std::int64_t carried = NextDue::mail_carried;
  for (const std::uint32_t executors : {1U, 2U, 4U}) {
    CAPTURE(executors);
    Run run(executors);
    run.run(load.history().batch(0));
    run.run(load.history().batch(1));
    CHECK(run.replica.next_due_ns() == carried);
    CHECK(run.replies.empty());
    const Digest with_mail = run.replica.end().root;
    run.run(load.history().batch(2));
    CHECK(run.replica.end().root != with_mail);
    CHECK(run.replica.next_due_ns() == carried);
    run.run(load.history().batch(3));
    run.run(load.history().batch(4));
    CHECK(run.replica.next_due_ns() == NextDue::nothing_due);
    REQUIRE(run.replies.size() == 1);
    CHECK(run.last<Done>().op() == static_cast<std::uint32_t>(Op::pass));
  }
}

TEST_CASE("what a shard may not carry comes to nothing, and the client hears of it") {
  Genesis genesis = workload_genesis();
  genesis.shard_mail_bytes = 4096;
  genesis.max_rounds = 4;
  genesis.shard_effects = 4096;
  genesis.shard_effect_bytes = 1U << 20U;
  Workload load(1);
  for (int i = 0; i < 40; ++i) load.add(Op::spread, 1, 8, 5);
  load.seal();
  Run one(1, genesis);
  one.run(load.history());
  const auto dropped = std::ranges::count_if(one.replies, [](const Reply& reply) {
    return reply.outcome == Outcome::trapped && reply.detail == static_cast<std::uint32_t>(TrapKind::shard_budget);
  });
  CHECK(dropped > 0);
  CHECK(one.replica.next_due_ns() == NextDue::mail_carried);
  Run two(2, genesis);
  two.run(load.history());
  CHECK(two.replica.end() == one.replica.end());
  CHECK(two.sorted_replies() == one.sorted_replies());
}

TEST_CASE("messages in circles over full rings get through") {
  Genesis genesis = workload_genesis();
  genesis.shard_effects = 1U << 16U;
  genesis.shard_effect_bytes = 64U << 20U;
  genesis.max_rounds = 12;
  Workload load(3);
  for (int i = 0; i < 100; ++i) load.add(Op::spread, static_cast<std::uint64_t>(i), 9, 50);
  load.seal();
  Run one(1, genesis);
  one.run(load.history());
  CHECK(one.replies.size() == 100 * 512);
  Run four(4, genesis);
  four.run(load.history());
  CHECK(four.replica.end() == one.replica.end());
  CHECK(four.sorted_replies() == one.sorted_replies());
}

TEST_CASE("timers fire in the order of deadline, actor and id, once, and not when cancelled") {
  Run run(1);
  Workload load(1);
  run.run(load.history().batch(0));
  const auto alarms = [&](std::uint64_t worker) {
    load.add(Op::answer, worker, 0, 0);
    run.run(load.seal());
    return run.last<Done>().a();
  };
  load.add(Op::alarm, 1, 100, 7);
  load.add(Op::alarm, 2, 50, 8);
  load.add(Op::alarm, 3, 60, 9);
  load.add(Op::cancel, 3, 0, 0);
  run.run(load.seal());
  CHECK(run.replica.next_due_ns() == 1050);
  load.advance(49);
  run.run(load.seal());
  CHECK(run.replica.next_due_ns() == 1050);
  load.advance(1);
  run.run(load.seal());
  CHECK(run.replica.next_due_ns() == 1100);
  load.advance(1000);
  run.run(load.seal());
  CHECK(run.replica.next_due_ns() == NextDue::nothing_due);
  CHECK(alarms(1) == 4);  // start, the request, the alarm, this
  CHECK(alarms(2) == 4);
  CHECK(alarms(3) == 4);  // start, two requests, this
}

TEST_CASE("a timer whose handler traps is gone") {
  Single test;
  test.ask(Op::alarm, 10, Worker::failing_alarm);
  const Checkpoint before = test.run.replica.end();
  test.load.advance(10);
  test.run.run(test.load.seal());
  CHECK(test.run.replica.next_due_ns() == NextDue::nothing_due);
  CHECK(test.run.replica.end().effects != before.effects);
  CHECK(test.run.replica.end().root != before.root);  // the timer's slot is free again
  test.ask(Op::answer);
  CHECK(test.run.last<Done>().a() == 4);  // start and three requests
}

TEST_CASE("random numbers of an actor do not depend on what others draw") {
  const auto draw = [](bool others) {
    Run run(1);
    Workload load(1);
    run.run(load.history().batch(0));
    if (others) load.add(Op::draw, 2, 5, 0);
    load.add(Op::draw, 1, 1000, 0);
    run.run(load.seal());
    return std::tuple{run.last<Done>().a(), run.last<Done>().b()};
  };
  CHECK(draw(false) == draw(true));
  Single test;
  test.ask(Op::draw, 1000);
  const std::uint64_t first = test.run.last<Done>().b();
  test.ask(Op::draw, 1000);
  CHECK(test.run.last<Done>().b() != first);
}

/// A replica of one executor that can be asked.
struct Asked {
  Asked() { replica.run(load.history().batch(0)); }

  /// The frame is valid until the next question.
  const ReplyFrame& ask(std::uint64_t key, std::uint32_t message_type, std::span<const std::byte> payload) {
    while (!replies.peek().empty()) replies.release();
    const QueryFrame query{.route = session_number(0, 0, 5),
                           .request = 9,
                           .key = key,
                           .actor_type = name_id("worker"),
                           .message_type = message_type,
                           .length = static_cast<std::uint32_t>(payload.size())};
    const auto room = queries.claim(sizeof query + payload.size());
    std::memcpy(room.data(), &query, sizeof query);
    std::memcpy(room.data() + sizeof query, payload.data(), payload.size());
    queries.publish();
    CHECK(replica.answer_queries() == 1);
    const auto frame = replies.peek();
    REQUIRE_FALSE(frame.empty());
    return *reinterpret_cast<const ReplyFrame*>(frame.data());
  }
  const Done& look(std::uint64_t key) {
    const ReplyFrame& reply = ask(key, message_id<Look>, builder.encode<Look>(0U));
    REQUIRE(reply.outcome == Outcome::reply);
    return decode<Done>(reinterpret_cast<const std::byte*>(&reply + 1));
  }

  ByteRing replies{4096};
  ByteRing queries{4096};
  Replica replica{workload(), workload_genesis(), {.replies = &replies, .queries = &queries}};
  Workload load{1};
  MessageBuilder builder{1024};
};

TEST_CASE("queries are answered between batches, change nothing and create nobody") {
  Asked test;
  test.load.add(Op::silent, 1, 0, 0);
  test.replica.run(test.load.seal());
  const Checkpoint before = test.replica.end();
  CHECK(test.look(1).a() == 2);
  const ReplyFrame* reply = &test.ask(1, message_id<Look>, test.builder.encode<Look>(0U));
  CHECK(reply->route == session_number(0, 0, 5));
  CHECK(reply->request == 9);
  reply = &test.ask(77, message_id<Look>, test.builder.encode<Look>(0U));
  CHECK(reply->outcome == Outcome::trapped);
  CHECK(reply->detail == static_cast<std::uint32_t>(TrapKind::no_actor));
  reply = &test.ask(1, message_id<Do>, test.builder.encode<Do>(0U, 0U, 0U, ""));
  CHECK(reply->detail == static_cast<std::uint32_t>(TrapKind::no_handler));
  CHECK(test.replica.end() == before);
}

TEST_CASE("an actor's time never runs back, though a message's cause may be older than its last") {
  Asked test;
  test.load.add(Op::pass, 1, 0, 2);  // reaches worker 2 in round 1, with this stamp
  test.load.advance(500);
  test.load.add(Op::silent, 2, 0, 0);  // round 0, later stamp
  test.replica.run(test.load.seal());
  CHECK(test.look(2).a() == 3);
  CHECK(test.look(2).b() == 0);
}

TEST_CASE("a checkpoint is taken at the end of the first batch that reaches the interval") {
  CHECK_FALSE(is_checkpoint(1, 15, 16));
  CHECK(is_checkpoint(1, 16, 16));
  CHECK(is_checkpoint(16, 1, 16));
  CHECK(is_checkpoint(10, 100, 16));
  CHECK_FALSE(is_checkpoint(17, 0, 16));
  CHECK_FALSE(is_checkpoint(17, 15, 16));
}

TEST_CASE("a poller that is a board behind holds executors up, and nothing is lost") {
  CheckpointBoard board(1, 1, {});
  for (std::uint64_t i = 0; i < CheckpointBoard::slot_count; ++i) {
    const auto slot = board.open(0);
    REQUIRE(slot);
    slot->batch->index = i + 1;
    board.publish(0);
  }
  CHECK_FALSE(board.open(0));
  for (std::uint64_t i = 0; i < CheckpointBoard::slot_count; ++i) CHECK(board.poll()->batch == i + 1);
  CHECK_FALSE(board.poll());
  CHECK(board.open(0));
}

}  // namespace
}  // namespace lockstep
