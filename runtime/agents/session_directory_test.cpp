// SPDX-License-Identifier: Apache-2.0
#include "runtime/agents/session_directory.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <map>
#include <random>

using lockstep::SessionDirectory;

TEST_CASE("a session that is heard of in time does not expire, and one that is not does") {
  SessionDirectory directory(100);
  directory.touch(1, 10);
  directory.touch(2, 20);
  CHECK(directory.next_expiry_ns() == 110);
  directory.touch(1, 50);
  CHECK_FALSE(directory.find_silent(119));
  const auto silent = directory.find_silent(120);
  REQUIRE(silent);
  CHECK(silent->session == 2);
  CHECK(silent->last_activity_ns == 20);
  directory.remove(2);
  CHECK_FALSE(directory.find_silent(149));
  CHECK(directory.find_silent(150)->session == 1);
}

TEST_CASE("after a start every session has its whole time again") {
  SessionDirectory directory(100);
  directory.touch(1, 10);
  directory.start(1000);
  CHECK_FALSE(directory.find_silent(1099));
  CHECK(directory.find_silent(1100)->last_activity_ns == 10);
}

TEST_CASE("without an expiry nothing is remembered") {
  SessionDirectory directory(0);
  directory.touch(1, 10);
  CHECK(directory.size() == 0);
  CHECK(directory.next_expiry_ns() == INT64_MAX);
}

TEST_CASE("sessions expire as a model says, whatever comes in between") {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    CAPTURE(seed);
    std::mt19937_64 random(seed);
    SessionDirectory directory(50);
    std::map<std::uint64_t, std::int64_t> model;
    std::int64_t now = 0;
    for (int step = 0; step < 5000; ++step) {
      now += static_cast<std::int64_t>(random() % 3);
      const std::uint64_t session = 1 + random() % 200;
      if (random() % 10 == 0) {
        directory.remove(session);
        model.erase(session);
      } else {
        directory.touch(session, now);
        model[session] = now;
      }
      while (const auto silent = directory.find_silent(now)) {
        REQUIRE(model.contains(silent->session));
        CHECK(model[silent->session] == silent->last_activity_ns);
        CHECK(silent->last_activity_ns + 50 <= now);
        directory.remove(silent->session);
        model.erase(silent->session);
      }
      CHECK(directory.size() == model.size());
      CHECK(std::ranges::all_of(model, [&](const auto& entry) { return entry.second + 50 > now; }));
    }
  }
}
