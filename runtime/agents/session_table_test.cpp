// SPDX-License-Identifier: Apache-2.0
#include "runtime/agents/session_table.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <map>
#include <memory>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "lockstep/testing/arena_fixture.hpp"

namespace lockstep {
namespace {

using testing::ArenaFixture;

constexpr std::uint64_t route_a = 0xA;
constexpr std::uint64_t route_b = 0xB;

SessionTable::Answer reply(std::string_view text) {
  return {EffectKind::reply, TrapKind::none, 7, std::as_bytes(std::span(text))};
}

std::string text_of(const SessionTable::Answer& answer) {
  return {reinterpret_cast<const char*>(answer.payload.data()), answer.payload.size()};
}

/// A table with one session, number 5.
struct One {
  explicit One(std::uint64_t capacity_bytes = 1U << 20U) : arena(capacity_bytes), table(arena.arena()) {
    CHECK(table.open(5, 99, route_a, 10));
  }
  Verdict ask(std::uint64_t request, std::uint32_t ack_distance = 100) {
    return table.admit(5, request, ack_distance, 20).verdict;
  }
  ArenaFixture arena;
  SessionTable table;
};

TEST_CASE("a request runs once, and its retry gets the answer it got") {
  One one;
  CHECK(one.ask(1) == Verdict::fresh);
  const auto recipient = one.table.answer(5, 1, reply("first"));
  REQUIRE(recipient);
  CHECK(recipient->route == route_a);
  CHECK(recipient->answers == 1);
  const SessionTable::Admission again = one.table.admit(5, 1, 0, 30);
  CHECK(again.verdict == Verdict::answered);
  CHECK(text_of(again.answer) == "first");
  CHECK(again.answer.message_type == 7);
}

TEST_CASE("only the first answer counts") {
  One one;
  CHECK(one.ask(1) == Verdict::fresh);
  CHECK(one.table.answer(5, 1, reply("first")));
  CHECK_FALSE(one.table.answer(5, 1, reply("second")));
  CHECK(text_of(one.table.admit(5, 1, 0, 30).answer) == "first");
}

TEST_CASE("a retry of what still runs waits for its answer with the others") {
  One one;
  CHECK(one.ask(1) == Verdict::fresh);
  CHECK(one.ask(1) == Verdict::attached);
  CHECK(one.ask(1) == Verdict::attached);
  CHECK(one.table.answer(5, 1, reply("x"))->answers == 3);
}

TEST_CASE("what was acknowledged is forgotten and never runs again") {
  One one;
  for (std::uint64_t request = 1; request <= 3; ++request) {
    CHECK(one.ask(request) == Verdict::fresh);
    CHECK(one.table.answer(5, request, reply("x")));
  }
  CHECK(one.ask(4, 1) == Verdict::fresh);  // 1 and 2 are done with
  CHECK(one.ask(2) == Verdict::stale);
  CHECK(one.ask(3) == Verdict::answered);
  CHECK_FALSE(one.table.answer(5, 2, reply("late")));
}

TEST_CASE("a request that comes late, below those that ran, is fresh all the same") {
  One one;
  CHECK(one.ask(10) == Verdict::fresh);
  CHECK(one.ask(30) == Verdict::fresh);
  CHECK(one.ask(20) == Verdict::fresh);
  CHECK(one.ask(20) == Verdict::attached);
  CHECK(one.ask(10) == Verdict::attached);
  CHECK(one.ask(30) == Verdict::attached);
}

TEST_CASE("a resumed session is answered where it resumed, for what was sent there") {
  One one;
  CHECK(one.ask(1) == Verdict::fresh);
  CHECK(one.ask(2) == Verdict::fresh);
  CHECK_FALSE(one.table.resume(5, 98, route_b, 40));  // not its secret
  CHECK_FALSE(one.table.resume(6, 99, route_b, 40));
  CHECK(one.table.resume(5, 99, route_b, 40) == route_a);
  CHECK(one.ask(2) == Verdict::attached);
  CHECK(one.table.answer(5, 1, reply("x"))->route == route_b);
  const auto second = one.table.answer(5, 2, reply("x"));
  CHECK(second->route == route_b);
  CHECK(second->answers == 1);  // not the copy that the lost connection sent
}

TEST_CASE("a closed session is unknown and leaves no memory behind") {
  One one;
  CHECK(one.table.close(5) == route_a);
  CHECK(one.table.open(6, 1, route_a, 10));
  CHECK(one.table.close(6));
  const std::uint64_t before = one.arena.arena().header().allocated_bytes;
  CHECK(one.table.open(7, 1, route_a, 10));
  for (std::uint64_t request = 1; request <= 40; ++request) {
    CHECK(one.table.admit(7, request == 40 ? UINT64_MAX : request, 100, 20).verdict == Verdict::fresh);
    CHECK(one.table.answer(7, request == 40 ? UINT64_MAX : request, reply(std::string(5000, 'x'))));
  }
  CHECK(one.table.close(7));
  CHECK_FALSE(one.table.close(7));
  CHECK(one.table.admit(7, 1, 0, 20).verdict == Verdict::no_session);
  CHECK(one.table.size() == 0);
  CHECK(one.arena.arena().header().allocated_bytes == before);
}

TEST_CASE("answers that find no room are given, remembered as given, and not kept") {
  One one;
  std::uint64_t request = 0;
  Verdict seen = Verdict::answered;
  while (seen == Verdict::answered) {
    REQUIRE(one.ask(++request, 1000) == Verdict::fresh);
    CHECK(one.table.answer(5, request, reply(std::string(60'000, 'x'))));
    seen = one.ask(request, 1000);
  }
  CHECK(seen == Verdict::lost);
  CHECK(request > 5);
  CHECK(one.arena.arena().header().high_water_bytes <= one.arena.arena().capacity_bytes() / 2);
  CHECK(one.ask(request + 1, 1) == Verdict::fresh);  // acknowledged: there is room again
  CHECK(one.table.answer(5, request + 1, reply(std::string(60'000, 'y'))));
  CHECK(one.ask(request + 1, 1) == Verdict::answered);
}

TEST_CASE("a request that could not be remembered does not run, and sessions still open") {
  One one(64U << 10U);
  std::uint64_t request = 0;
  while (one.ask(++request, UINT16_MAX) == Verdict::fresh) REQUIRE(request < 10'000);
  CHECK(one.ask(request, UINT16_MAX) == Verdict::no_room);
  CHECK(one.ask(request - 1, UINT16_MAX) == Verdict::attached);
  std::uint64_t number = 100;
  while (one.table.open(number, 1, route_a, 10)) ++number;
  CHECK(one.table.size() == one.table.max_sessions());
  CHECK(one.table.size() == 64);
  CHECK(one.ask(request, 1) == Verdict::fresh);
}

TEST_CASE("requests that wait are named in the order of session and number, however they came") {
  One one;
  CHECK(one.table.open(4, 1, route_a, 10));
  for (const std::uint64_t request : {3U, 1U, 2U}) {
    CHECK(one.ask(request) == Verdict::fresh);
    one.table.wait(5, request);
  }
  CHECK(one.table.admit(4, 9, 0, 10).verdict == Verdict::fresh);
  one.table.wait(4, 9);
  CHECK(one.table.answer(5, 2, reply("x")));
  std::vector<SessionTable::Waiting> named;
  while (const auto waiting = one.table.take_waiting()) named.push_back(*waiting);
  CHECK(named == std::vector<SessionTable::Waiting>{{4, 9}, {5, 1}, {5, 3}});
  CHECK_FALSE(one.table.has_waiting());
}

// The model: what a table promises, in plain containers.
struct Model {
  struct Known {
    bool answered = false;
    std::string text;
  };
  struct Client {
    std::uint64_t ack_below = 0;
    std::map<std::uint64_t, Known> requests;
  };
  std::map<std::uint64_t, Client> sessions;

  Verdict admit(std::uint64_t session, std::uint64_t request, std::uint32_t distance) {
    const auto found = sessions.find(session);
    if (found == sessions.end()) return Verdict::no_session;
    Client& client = found->second;
    client.ack_below = std::max(client.ack_below, request - std::min<std::uint64_t>(request, distance));
    client.requests.erase(client.requests.begin(), client.requests.lower_bound(client.ack_below));
    if (request < client.ack_below) return Verdict::stale;
    const auto [known, is_new] = client.requests.try_emplace(request);
    if (is_new) return Verdict::fresh;
    return known->second.answered ? Verdict::answered : Verdict::attached;
  }
  bool answer(std::uint64_t session, std::uint64_t request, const std::string& text) {
    const auto found = sessions.find(session);
    if (found == sessions.end()) return false;
    const auto known = found->second.requests.find(request);
    if (known == found->second.requests.end() || known->second.answered) return false;
    known->second = {true, text};
    return true;
  }
};

TEST_CASE("whatever is asked in whatever order, a table answers as its model, at any address and after any restart") {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    CAPTURE(seed);
    std::mt19937_64 random(seed);
    const auto below = [&](std::uint64_t bound) { return random() % bound; };
    constexpr std::uint64_t capacity_bytes = 4U << 20U;
    Model model;
    // Two tables go the same way; the second is made anew from its image now and then.
    ArenaFixture first(capacity_bytes);
    SessionTable table(first.arena());
    auto second = std::make_unique<ArenaFixture>(capacity_bytes);
    auto twin = std::make_unique<SessionTable>(second->arena());
    std::uint64_t next_number = 1;
    for (int step = 0; step < 3000; ++step) {
      const std::uint64_t session = 1 + below(next_number);
      const std::uint64_t request = 1 + static_cast<std::uint64_t>(step) / 30 + below(40);
      switch (below(12)) {
        case 0:
          CHECK(table.open(next_number, next_number, route_a, step));
          CHECK(twin->open(next_number, next_number, route_a, step));
          model.sessions[next_number++];
          break;
        case 1: {
          if (below(4) != 0) break;
          const bool known = model.sessions.erase(session) != 0;
          CHECK(table.close(session).has_value() == known);
          CHECK(twin->close(session).has_value() == known);
          break;
        }
        case 2:
          CHECK(table.resume(session, session, route_b, step) == twin->resume(session, session, route_b, step));
          break;
        case 3:
        case 4:
        case 5: {
          const std::string text(below(8) == 0 ? below(6000) : below(80), static_cast<char>('a' + below(26)));
          const bool counts = model.answer(session, request, text);
          CHECK(table.answer(session, request, reply(text)).has_value() == counts);
          CHECK(twin->answer(session, request, reply(text)).has_value() == counts);
          break;
        }
        case 6: {
          if (below(4) != 0) break;
          const std::vector<std::byte> image = second->copy_image();
          twin.reset();
          second = std::make_unique<ArenaFixture>(image, capacity_bytes);
          twin = std::make_unique<SessionTable>(second->arena());
          break;
        }
        default: {
          const auto distance = static_cast<std::uint32_t>(below(30));
          const Verdict expected = model.admit(session, request, distance);
          const SessionTable::Admission admission = table.admit(session, request, distance, step);
          CHECK(admission.verdict == expected);
          CHECK(twin->admit(session, request, distance, step).verdict == expected);
          if (expected == Verdict::answered) {
            CHECK(text_of(admission.answer) == model.sessions[session].requests[request].text);
          }
        }
      }
      CHECK(table.size() == model.sessions.size());
    }
    CHECK(first.has_image(second->arena().image()));
    CHECK(first.is_zero_beyond_image());
  }
}

}  // namespace
}  // namespace lockstep
