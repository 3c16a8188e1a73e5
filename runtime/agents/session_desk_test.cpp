// SPDX-License-Identifier: Apache-2.0
// Durable sessions on the production executors: what runs, what is answered, and that both do not depend on how many
// executors there are.
#include <doctest/doctest.h>

#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "lockstep/wire.hpp"
#include "runtime/agents/replica.hpp"
#include "runtime/agents/testing/session_workload.hpp"

namespace lockstep {
namespace {

using namespace testing;
using wire::WireError;

constexpr std::size_t tiny_ring_bytes = 1024;
constexpr std::uint64_t route_a = session_number(1, 0, 1);
constexpr std::uint64_t route_b = session_number(1, 0, 2);
constexpr std::uint64_t secret = 77;

struct Told {
  std::uint64_t route = 0;
  std::uint64_t request = 0;
  Outcome outcome = Outcome::reply;
  std::uint32_t detail = 0;
  std::uint32_t answers = 0;
  std::uint32_t message_type = 0;
  std::string payload;

  [[nodiscard]] bool is(SessionEvent event) const {
    return outcome == Outcome::session && detail == static_cast<std::uint32_t>(event);
  }
  [[nodiscard]] bool is(WireError error) const {
    return outcome == Outcome::refused && detail == static_cast<std::uint32_t>(error);
  }
  friend auto operator<=>(const Told&, const Told&) = default;
};

struct Run {
  explicit Run(std::uint32_t executors, const Genesis& genesis = workload_genesis())
      : replica(workload(), genesis, {.executors = executors, .mail_ring_bytes = tiny_ring_bytes, .replies = &ring}) {}

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
      told.push_back({frame.route, frame.request, frame.outcome, frame.detail, frame.answers, frame.message_type,
                      std::string(reinterpret_cast<const char*>(&frame + 1), frame.length)});
      ring.release();
    }
  }

  ByteRing ring{1024};
  Replica replica;
  std::vector<Told> told;
};

/// One client, one replica.
struct One {
  explicit One(const Genesis& genesis = workload_genesis()) : run(2, genesis) {
    run.run(load.history().batch(0));
    session = load.open_session(secret, route_a);
    seal();
  }
  void seal() {
    run.told.clear();
    run.run(load.seal());
  }
  void add(std::uint64_t request, Op op, std::uint64_t worker = 1, std::uint64_t a = 0, std::uint64_t b = 0,
           std::uint32_t ack_distance = 0) {
    load.add_request(session, request, ack_distance, op, worker, a, b);
  }
  /// A batch of its own with this request; the one thing told.
  Told ask(std::uint64_t request, Op op, std::uint64_t worker = 1, std::uint64_t a = 0, std::uint64_t b = 0,
           std::uint32_t ack_distance = 0) {
    add(request, op, worker, a, b, ack_distance);
    seal();
    REQUIRE(run.told.size() == 1);
    return run.told[0];
  }
  /// How many handlers a worker has run, by an ephemeral client.
  std::uint64_t handled(std::uint64_t worker) {
    load.add(Op::answer, worker, 0, 0);
    seal();
    REQUIRE(run.told.size() == 1);
    alignas(16) std::byte aligned[256];
    std::memcpy(aligned, run.told[0].payload.data(), run.told[0].payload.size());
    return decode<Done>(aligned).a();
  }

  Workload load{1};
  Run run;
  std::uint64_t session = 0;
};

TEST_CASE("a session opens with the number of its record, and its connection hears of it") {
  One one;
  REQUIRE(one.run.told.size() == 1);
  CHECK(one.run.told[0].is(SessionEvent::opened));
  CHECK(one.run.told[0].route == route_a);
  CHECK(one.run.told[0].request == one.session);
  CHECK(one.session == 2);  // behind genesis
}

TEST_CASE("a request that is sent again gets the first answer, and nothing runs") {
  One one;
  const Told first = one.ask(1, Op::answer);
  CHECK(first.outcome == Outcome::reply);
  CHECK(first.route == route_a);
  CHECK(one.ask(1, Op::answer) == first);
  CHECK(one.ask(1, Op::fail) == first);  // whatever the copy says
  CHECK(one.handled(1) == 3);            // start, the request, this question
}

TEST_CASE("a trap is an answer like another") {
  One one;
  const Told first = one.ask(1, Op::fail);
  CHECK(first.outcome == Outcome::trapped);
  CHECK(one.ask(1, Op::fail) == first);
}

TEST_CASE("a request that comes to nothing says so, again and again") {
  One one;
  const Told first = one.ask(1, Op::silent);
  CHECK(first.outcome == Outcome::no_reply);
  CHECK(one.ask(1, Op::silent) == first);
}

TEST_CASE("an answer from another shard goes through the shard that the request came to, and is kept there") {
  One one;
  for (std::uint64_t request = 1; request <= 20; ++request) {
    CAPTURE(request);
    const Told first = one.ask(request, Op::pass, 1, 3, request, 0);
    CHECK(first.outcome == Outcome::reply);
    CHECK(first.answers == 1);
    CHECK(one.ask(request, Op::pass, 1, 3, request, 0) == first);
  }
}

TEST_CASE("of many replies the first is the answer") {
  One one;
  const Told first = one.ask(1, Op::spread, 1, 4, 7);
  CHECK(first.outcome == Outcome::reply);
  CHECK(one.ask(1, Op::spread, 1, 4, 7) == first);
}

TEST_CASE("a trap in another shard is the request's answer") {
  One one;
  for (std::uint64_t worker = 2; worker < 12; ++worker) {
    const Told first = one.ask(worker, Op::fail_far, 1, 0, worker);
    CHECK(first.outcome == Outcome::trapped);
    CHECK(first.detail == static_cast<std::uint32_t>(TrapKind::exception));
    CHECK(one.ask(worker, Op::fail_far, 1, 0, worker) == first);
  }
}

TEST_CASE("a request whose messages come to nothing anywhere is told so at the batch's end") {
  One one;
  const Told first = one.ask(1, Op::whisper, 1, 2);
  CHECK(first.outcome == Outcome::no_reply);
  CHECK(first.answers == 1);
  CHECK(one.ask(1, Op::whisper, 1, 2) == first);
}

TEST_CASE("copies of a request that is under way wait with it, over batches, and are answered at once") {
  One one;
  one.add(1, Op::pass, 1, 14, 5);  // more hops than two batches have rounds
  one.seal();
  CHECK(one.run.told.empty());
  CHECK(one.run.replica.next_due_ns() == NextDue::mail_carried);
  one.add(1, Op::pass, 1, 14, 5);
  one.seal();
  CHECK(one.run.told.empty());
  one.seal();
  REQUIRE(one.run.told.size() == 1);
  CHECK(one.run.told[0].outcome == Outcome::reply);
  CHECK(one.run.told[0].answers == 2);
}

TEST_CASE("while mail is carried nobody is told that nothing comes") {
  One one;
  one.add(1, Op::pass, 1, 14, 5);
  one.add(2, Op::whisper, 1, 0, 0, 1);
  one.seal();
  CHECK(one.run.told.empty());
  one.seal();
  CHECK(one.run.told.empty());
  one.seal();
  CHECK(one.run.told.size() == 2);
  CHECK(one.run.replica.next_due_ns() == NextDue::nothing_due);
}

TEST_CASE("what was acknowledged never runs again") {
  One one;
  one.ask(1, Op::answer);
  one.ask(2, Op::answer);  // acknowledges 1
  CHECK(one.ask(1, Op::answer, 1, 0, 0, 0).is(WireError::stale));
  CHECK(one.handled(1) == 4);
}

TEST_CASE("an unknown session's request does not run") {
  One one;
  one.session = 999;
  one.add(1, Op::answer);
  one.seal();
  CHECK(one.run.told.empty());  // no one knows where to
  CHECK(one.handled(1) == 2);
}

TEST_CASE("a resumed session is answered over its new connection, and the old one hears that it moved") {
  One one;
  const Told first = one.ask(1, Op::answer);
  CHECK(one.load.open_session(secret, route_b, one.session) == one.session);
  one.seal();
  REQUIRE(one.run.told.size() == 2);
  std::ranges::sort(one.run.told);
  CHECK(one.run.told[0].is(SessionEvent::moved));
  CHECK(one.run.told[0].route == route_a);
  CHECK(one.run.told[0].answers == 0);
  CHECK(one.run.told[1].is(SessionEvent::resumed));
  CHECK(one.run.told[1].route == route_b);
  CHECK(one.run.told[1].request == one.session);
  Told again = one.ask(1, Op::answer);
  CHECK(again.route == route_b);
  again.route = route_a;
  CHECK(again == first);
}

TEST_CASE("a session cannot be resumed with another secret, nor one that is not there") {
  One one;
  one.load.open_session(secret + 1, route_b, one.session);
  one.seal();
  CHECK(one.run.told.at(0).is(SessionEvent::unknown));
  CHECK(one.run.told.at(0).route == route_b);
  one.load.open_session(secret, route_b, 12345);
  one.seal();
  CHECK(one.run.told.at(0).is(SessionEvent::unknown));
  CHECK(one.ask(1, Op::answer).route == route_a);
}

TEST_CASE("a session ends by goodbye over its own connection, or by expiry") {
  One one;
  one.load.close_session(one.session, route_b);
  one.seal();
  CHECK(one.run.told.empty());
  one.load.close_session(one.session, route_a);
  one.seal();
  CHECK(one.run.told.at(0).is(SessionEvent::closed));
  one.session = one.load.open_session(secret, route_a);
  one.seal();
  one.load.close_session(one.session, 0);
  one.seal();
  CHECK(one.run.told.at(0).is(SessionEvent::expired));
  CHECK(one.run.told.at(0).answers == 0);
  one.add(1, Op::answer);
  one.seal();
  CHECK(one.run.told.empty());
}

TEST_CASE("there are only as many sessions as genesis has memory for") {
  Genesis genesis = workload_genesis();
  genesis.shard_session_bytes = 64U << 10U;
  One one(genesis);
  for (int i = 1; i < 64; ++i) one.load.open_session(secret, route_a);
  one.seal();
  CHECK(std::ranges::all_of(one.run.told, [](const Told& told) { return told.is(SessionEvent::opened); }));
  one.load.open_session(secret, route_a);
  one.seal();
  CHECK(one.run.told.at(0).is(SessionEvent::refused));
}

TEST_CASE("an answer beyond what may be kept is given once, and its request never runs again") {
  Genesis genesis = workload_genesis();
  genesis.shard_session_bytes = 64U << 10U;
  One one(genesis);
  std::uint64_t request = 0;
  Told again;
  while (!again.is(WireError::answer_lost)) {
    const auto distance = static_cast<std::uint32_t>(request++);
    const Told first = one.ask(request, Op::reply_long, 1, 150, 0, distance);
    REQUIRE(first.outcome == Outcome::reply);
    again = one.ask(request, Op::reply_long, 1, 150, 0, distance);
    REQUIRE(request < 1000);
  }
  CHECK(one.handled(1) == request + 2);
}

TEST_CASE("sessions' state, effects and answers do not depend on how many executors there are") {
  for (std::uint64_t seed = 1; seed <= 12; ++seed) {
    CAPTURE(seed);
    SessionWorkload load(seed);
    Run one(1);
    one.run(load.history().batch(0));
    for (int i = 0; i < 120; ++i) one.run(load.random_batch());
    while (one.replica.next_due_ns() == NextDue::mail_carried) one.run(load.tick());
    REQUIRE(one.replica.checkpoints().size() > 10);
    std::ranges::sort(one.told);
    for (const std::uint32_t executors : {2U, 3U, 4U, 8U}) {
      CAPTURE(executors);
      Run several(executors);
      several.run(load.history());
      std::ranges::sort(several.told);
      CHECK(several.replica.end() == one.replica.end());
      CHECK(several.replica.checkpoints() == one.replica.checkpoints());
      CHECK(several.told == one.told);
    }
  }
}

TEST_CASE("every request has one answer, however often, late, or from where it is sent") {
  for (std::uint64_t seed = 1; seed <= 40; ++seed) {
    CAPTURE(seed);
    SessionWorkload load(seed);
    Run run(2);
    run.run(load.history().batch(0));
    for (int i = 0; i < 60; ++i) run.run(load.random_batch());
    while (run.replica.next_due_ns() == NextDue::mail_carried) run.run(load.tick());
    std::map<std::uint64_t, std::uint64_t> session_of;  // by route
    for (const Told& told : run.told) {
      if (told.is(SessionEvent::opened) || told.is(SessionEvent::resumed)) session_of[told.route] = told.request;
    }
    std::map<std::pair<std::uint64_t, std::uint64_t>, Told> answers;
    for (Told told : run.told) {
      if (told.outcome == Outcome::session || told.outcome == Outcome::refused) continue;
      REQUIRE(session_of.contains(told.route));
      const std::pair key{session_of[told.route], told.request};
      told.route = 0;
      told.answers = 0;
      const auto [first, is_new] = answers.try_emplace(key, told);
      CHECK(first->second == told);
    }
    for (const SessionWorkload::Client& client : load.clients()) {
      if (!client.open) continue;
      for (const auto& [number, request] : client.requests) {
        // Unless it was acknowledged before it was first sent, it has been answered by now.
        if (number >= client.ack_below) CHECK(answers.contains({client.session, number}));
      }
    }
  }
}

}  // namespace
}  // namespace lockstep
