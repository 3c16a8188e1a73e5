// SPDX-License-Identifier: Apache-2.0
#include "runtime/agents/perimeter.hpp"

#include <doctest/doctest.h>

#include <string>

#include "runtime/agents/testing/perimeter_bench.hpp"

using namespace lockstep;
using namespace lockstep::testing;
using lockstep::wire::FrameKind;
using lockstep::wire::WireError;

TEST_CASE("a hello is answered when its record was executed, and what follows it waits until then") {
  PerimeterBench bench;
  const auto client = bench.network.connect();
  bench.network.client_sends(client, hello_frame() + deposit_frame(1));
  bench.turns(5);
  CHECK(bench.read(client).empty());
  CHECK(bench.network.is_paused(client));
  CHECK(bench.stamped() == 0);
  bench.execute();
  bench.turns(3);
  CHECK(bench.read(client).size() == 1);
  CHECK(bench.stamped() == 1);
  RecordCursor records(bench.pool.view(2).payload);
  const auto record = records.next();
  REQUIRE(record);
  CHECK(record->header->session == 1);
}

TEST_CASE("a client without a session is answered queries, leaves no trace, and may ask for one later") {
  PerimeterBench bench;
  const auto client = bench.network.connect();
  bench.network.client_sends(client, hello_frame(wire::Hello{}));
  bench.turns(2);
  const auto greeting = bench.read(client);
  REQUIRE(greeting.size() == 1);
  wire::HelloOk ok;
  std::memcpy(&ok, greeting[0].payload.data(), sizeof ok);
  CHECK(ok.session == 0);
  CHECK((ok.capabilities & wire::capability_sessions) == 0);
  bench.network.client_sends(
      client, message_frame<GetBalance>(FrameKind::query, 1, 6, payload_of<GetBalance>(std::uint64_t{6})));
  bench.network.client_sends(client, deposit_frame(2));
  bench.turn();
  CHECK(bench.execute_queries() == 1);
  bench.turns(2);
  const auto read = bench.read(client);
  REQUIRE(read.size() == 2);
  CHECK(read[0].error().code == WireError::no_session);
  CHECK(read[0].header.request == 2);
  CHECK(read[1].header.kind == FrameKind::reply);
  CHECK(bench.sequencer.last_seq() == 0);

  bench.network.client_sends(client, hello_frame() + deposit_frame(3));
  bench.turns(2);
  bench.execute();
  bench.turns(3);
  const auto second = bench.read(client);
  REQUIRE(second.size() == 1);
  std::memcpy(&ok, second[0].payload.data(), sizeof ok);
  CHECK(ok.session == 1);
  CHECK(bench.stamped() == 1);
}

TEST_CASE("a session goes on over another connection") {
  PerimeterBench bench;
  bench.greeted();
  wire::Hello hello;
  hello.resume_session = 1;
  hello.resume_secret = 55;
  const auto client = bench.network.connect();
  bench.network.client_sends(client, hello_frame(hello));
  bench.turns(2);
  bench.execute();
  bench.turns(2);
  const auto read = bench.read(client);
  REQUIRE(read.size() == 1);
  wire::HelloOk ok;
  std::memcpy(&ok, read[0].payload.data(), sizeof ok);
  CHECK(ok.session == 1);
  CHECK(ok.session_secret == 55);
}

TEST_CASE("a connection whose session moved, or expired, hears why and ends") {
  for (const auto& [event, error] : {std::pair{SessionEvent::moved, WireError::session_moved},
                                     std::pair{SessionEvent::expired, WireError::no_session}}) {
    PerimeterBench bench;
    const auto client = bench.greeted();
    bench.network.client_sends(client, deposit_frame(1));  // stays unanswered
    bench.turn();
    bench.push_answer({.route = bench.routes.at(1),
                       .request = 1,
                       .outcome = Outcome::session,
                       .answers = 0,
                       .detail = static_cast<std::uint32_t>(event)},
                      {});
    bench.turns(4);
    const auto read = bench.read(client);
    REQUIRE(read.size() == 1);
    CHECK(read[0].header.request == 0);
    CHECK(read[0].error().code == error);
    CHECK_FALSE(bench.network.is_open(client));
  }
}

TEST_CASE("too many sessions are an overload that ends the connection") {
  PerimeterBench bench;
  const auto client = bench.network.connect();
  bench.network.client_sends(client, hello_frame());
  bench.turns(2);
  RecordCursor records(bench.pool.view(1).payload);
  bench.push_answer({.route = records.next()->header->request,
                     .request = 1,
                     .outcome = Outcome::session,
                     .detail = static_cast<std::uint32_t>(SessionEvent::refused)},
                    {});
  bench.turns(4);
  CHECK(bench.read(client).at(0).error().code == WireError::overload);
  CHECK_FALSE(bench.network.is_open(client));
}

TEST_CASE("a request that acknowledges too little is refused before the stamp") {
  PerimeterBench bench;
  const auto client = bench.greeted();
  const std::string payload = payload_of<Deposit>(std::uint64_t{1}, std::int64_t{1});
  wire::FrameHeader header;
  header.kind = FrameKind::request;
  header.request = 5000;
  header.ack_distance = 1024;
  header.message_type = message_id<Deposit>;
  header.actor_type = teller_type;
  bench.network.client_sends(client, frame(header, payload));
  header.ack_distance = 1023;
  bench.network.client_sends(client, frame(header, payload));
  bench.turns(2);
  CHECK(bench.read(client).at(0).error().code == WireError::window);
  CHECK(bench.stamped() == 1);
}

TEST_CASE("one frame may answer several copies of a request, and an answer that nobody here asked for is passed on") {
  PerimeterBench bench;
  const auto client = bench.greeted();
  bench.network.client_sends(client, deposit_frame(1) + deposit_frame(1));
  bench.turn();
  for (const std::uint16_t answers : {std::uint16_t{2}, std::uint16_t{0}}) {
    bench.push_answer({.route = bench.routes.at(1), .request = 1, .outcome = Outcome::no_reply, .answers = answers},
                      {});
  }
  bench.turns(2);
  CHECK(bench.read(client).size() == 2);
  wire::FrameHeader goodbye;
  goodbye.kind = FrameKind::goodbye;
  bench.network.client_sends(client, frame(goodbye, ""));  // at once: nothing is in flight
  bench.turn();
  CHECK(bench.perimeter.metrics().session_records_total.value() == 2);
}
