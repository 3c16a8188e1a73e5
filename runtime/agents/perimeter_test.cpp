// SPDX-License-Identifier: Apache-2.0
#include "runtime/agents/perimeter.hpp"

#include <doctest/doctest.h>

#include <string>

#include "runtime/agents/testing/perimeter_bench.hpp"

using namespace lockstep;
using namespace lockstep::testing;
using lockstep::wire::FrameKind;
using lockstep::wire::WireError;

TEST_CASE("a client is greeted with its session and the limits it has to keep") {
  PerimeterBench::Options options;
  options.perimeter.schema_id = 77;
  options.perimeter.draw_secret = [] { return std::uint64_t{1234}; };
  PerimeterBench bench(options);
  bench.greeted();
  REQUIRE(bench.greeting.header.kind == FrameKind::hello_ok);
  wire::HelloOk ok;
  REQUIRE(bench.greeting.payload.size() == sizeof ok);
  std::memcpy(&ok, bench.greeting.payload.data(), sizeof ok);
  CHECK(ok.session == 1);  // the number of its record
  CHECK(ok.session_secret == 1234);
  CHECK(ok.schema_id == 77);
  CHECK(ok.version == 1);
  CHECK(ok.max_in_flight == 1024);
  CHECK(ok.reply_window == 1024);
  CHECK(ok.session_expiry_ms == 60'000);
  bench.greeted();
  wire::HelloOk second;
  std::memcpy(&second, bench.greeting.payload.data(), sizeof second);
  CHECK(second.session != ok.session);
}

TEST_CASE("a request is stamped as it was framed, and its answer comes back with its number") {
  PerimeterBench bench;
  const auto client = bench.greeted();
  const std::string payload = payload_of<Deposit>(std::uint64_t{9}, std::int64_t{42});
  wire::FrameHeader header;
  header.kind = FrameKind::request;
  header.request = 17;
  header.ack_distance = 4;
  header.message_type = message_id<Deposit>;
  header.actor_type = teller_type;
  header.key = 9;
  bench.network.client_sends(client, frame(header, payload));
  bench.turn();
  REQUIRE(bench.pool.sealed() == 2);
  RecordCursor records(bench.pool.view(2).payload);
  const auto record = records.next();
  REQUIRE(record.has_value());
  CHECK(record->header->kind == RecordKind::message);
  CHECK(record->header->request == 17);
  CHECK(record->header->ack_distance == 4);
  CHECK(record->header->key == 9);
  CHECK(record->header->actor_type == teller_type);
  CHECK(record->header->timestamp_ns == 1'000'000);
  CHECK(std::string_view(reinterpret_cast<const char*>(record->payload.data()), record->payload.size()) == payload);

  bench.execute();
  bench.turns(2);
  const auto read = bench.read(client);
  REQUIRE(read.size() == 1);
  CHECK(read[0].header.kind == FrameKind::reply);
  CHECK(read[0].header.request == 17);
  CHECK(read[0].header.message_type == message_id<Deposit>);
  CHECK(read[0].payload == payload);
}

TEST_CASE("frames cut at any byte give the same records") {
  for (const std::size_t chunk : {1U, 7U, 31U, 33U, 100U}) {
    PerimeterBench bench;
    bench.network.set_chunk_bytes(chunk);
    const auto client = bench.network.connect();
    std::string bytes = hello_frame();
    for (std::uint64_t request = 1; request <= 20; ++request) bytes += deposit_frame(request);
    bench.network.client_sends(client, bytes);
    while (bench.turn() != 0) bench.execute();
    CHECK(bench.stamped() == 20);
    const auto read = bench.read(client);
    REQUIRE(read.size() == 21);
    for (std::uint64_t request = 1; request <= 20; ++request) CHECK(read[request].header.request == request);
  }
}

TEST_CASE("a client is sent what a turn has for it in one piece") {
  PerimeterBench bench;
  const auto client = bench.greeted();
  std::string bytes;
  for (std::uint64_t request = 1; request <= 50; ++request) bytes += deposit_frame(request);
  bench.network.client_sends(client, bytes);
  bench.turn();
  CHECK(bench.execute() == 50);
  bench.turn();
  CHECK(bench.network.client_reads(client).empty());
  bench.turn();
  CHECK(bench.read(client).size() == 50);
}

TEST_CASE("what may not enter is answered, leaves no trace, and the connection goes on") {
  PerimeterBench bench;
  const auto client = bench.greeted();
  const std::string good = payload_of<Deposit>(std::uint64_t{1}, std::int64_t{1});

  SUBCASE("a message type the actor does not receive") {
    bench.network.client_sends(client, message_frame<Withdraw>(FrameKind::request, 1, 1, good));
    bench.turns(2);
    const auto read = bench.read(client);
    REQUIRE(read.size() == 1);
    CHECK(read[0].header.kind == FrameKind::error);
    CHECK(read[0].header.request == 1);
    CHECK(read[0].error().code == WireError::unknown_type);
  }
  SUBCASE("an actor type that does not exist") {
    wire::FrameHeader header;
    header.kind = FrameKind::request;
    header.request = 1;
    header.message_type = message_id<Deposit>;
    header.actor_type = 12345;
    bench.network.client_sends(client, frame(header, good));
    bench.turns(2);
    CHECK(bench.read(client).at(0).error().code == WireError::unknown_type);
  }
  SUBCASE("a query sent as a request, and a request sent as a query") {
    const std::string query = payload_of<GetBalance>(std::uint64_t{1});
    bench.network.client_sends(client, message_frame<GetBalance>(FrameKind::request, 1, 1, query));
    bench.network.client_sends(client, message_frame<Deposit>(FrameKind::query, 2, 1, good));
    bench.turns(2);
    const auto read = bench.read(client);
    REQUIRE(read.size() == 2);
    CHECK(read[0].error().code == WireError::unknown_type);
    CHECK(read[1].error().code == WireError::unknown_type);
  }
  SUBCASE("a payload that is no message of its type") {
    bench.network.client_sends(client, message_frame<Deposit>(FrameKind::request, 1, 1, std::string(24, '\xff')));
    bench.turns(2);
    CHECK(bench.read(client).at(0).error().code == WireError::verification_failed);
  }
  SUBCASE("an empty payload") {
    bench.network.client_sends(client, message_frame<Deposit>(FrameKind::request, 1, 1, ""));
    bench.turns(2);
    CHECK(bench.read(client).at(0).error().code == WireError::verification_failed);
  }
  CHECK(bench.stamped() == 0);
  CHECK_FALSE(bench.sequencer.has_open_records());
  bench.network.client_sends(client, deposit_frame(2));
  bench.turn();
  CHECK(bench.stamped() == 1);
}

TEST_CASE("what is not of the protocol gets an error and ends the connection, the others unharmed") {
  PerimeterBench bench;
  const auto other = bench.greeted();
  const auto client = bench.network.connect();
  WireError expected = WireError::malformed;
  SUBCASE("garbage") {
    bench.network.client_sends(client, std::string(64, 'x'));
  }
  SUBCASE("a request before the hello") {
    bench.network.client_sends(client, deposit_frame(1));
  }
  SUBCASE("a second hello") {
    bench.network.client_sends(client, hello_frame() + hello_frame());
  }
  SUBCASE("a frame only a node sends") {
    wire::FrameHeader header;
    header.kind = FrameKind::reply;
    bench.network.client_sends(client, hello_frame() + frame(header, ""));
  }
  SUBCASE("request number 0") {
    bench.network.client_sends(client, hello_frame() + deposit_frame(0));
  }
  SUBCASE("flags nobody defined") {
    std::string bytes = deposit_frame(1);
    bytes[5] = 1;
    bench.network.client_sends(client, hello_frame() + bytes);
  }
  SUBCASE("a length beyond the limit, long before its bytes arrive") {
    wire::FrameHeader header;
    header.kind = FrameKind::request;
    header.request = 1;
    std::string bytes = frame(header, "");
    bytes[3] = 0x7f;
    bench.network.client_sends(client, hello_frame() + bytes);
    expected = WireError::too_large;
  }
  SUBCASE("a hello of another protocol") {
    wire::Hello hello;
    hello.magic = 1;
    bench.network.client_sends(client, hello_frame(hello));
  }
  SUBCASE("a version this node does not speak") {
    wire::Hello hello;
    hello.version_min = 2;
    hello.version_max = 9;
    bench.network.client_sends(client, hello_frame(hello));
    expected = WireError::version;
  }
  SUBCASE("a session to resume that there is not") {
    wire::Hello hello;
    hello.resume_session = 5;
    bench.network.client_sends(client, hello_frame(hello));
    expected = WireError::no_session;
  }
  bench.turns(4);
  bench.execute();
  bench.turns(4);
  const auto read = bench.read(client);
  REQUIRE_FALSE(read.empty());
  CHECK(read.back().header.kind == FrameKind::error);
  CHECK(read.back().error().code == expected);
  CHECK(read.back().payload.size() > sizeof(wire::ErrorBody));
  CHECK_FALSE(bench.network.is_open(client));
  CHECK(bench.stamped() == 0);
  CHECK(bench.perimeter.metrics().errors_total[static_cast<std::size_t>(expected)].value() == 1);

  bench.network.client_sends(other, deposit_frame(1));
  bench.turn();
  CHECK(bench.stamped() == 1);
}

TEST_CASE("a buffer whose tables share children is refused in a moment, not verified for seconds") {
  // Each of 40 nodes points at the next twice: 2^40 paths in 600 bytes.
  flatbuffers::FlatBufferBuilder builder;
  auto node = CreateNode(builder);
  for (int i = 0; i != 40; ++i) node = CreateNode(builder, node, node);
  builder.Finish(node);
  PerimeterBench bench;
  const auto client = bench.greeted();
  bench.network.client_sends(
      client, message_frame<Node>(FrameKind::request, 1, 1,
                                  {reinterpret_cast<const char*>(builder.GetBufferPointer()), builder.GetSize()}));
  bench.turns(2);
  CHECK(bench.read(client).at(0).error().code == WireError::verification_failed);
}

TEST_CASE("a trapped handler is an error to the client that asked, with the trap's kind") {
  PerimeterBench bench;
  const auto client = bench.greeted();
  bench.network.client_sends(client, deposit_frame(8));
  bench.turn();
  RecordCursor records(bench.pool.view(2).payload);
  bench.answer(*records.next()->header, {}, Outcome::trapped, 4);
  bench.turns(2);
  const auto read = bench.read(client);
  REQUIRE(read.size() == 1);
  CHECK(read[0].header.request == 8);
  CHECK(read[0].error().code == WireError::trapped);
  CHECK(read[0].error().detail == 4);
}

TEST_CASE("a request without a reply ends in an empty one") {
  PerimeterBench bench;
  const auto client = bench.greeted();
  bench.network.client_sends(client, deposit_frame(8));
  bench.turn();
  RecordCursor records(bench.pool.view(2).payload);
  RecordHeader record = *records.next()->header;
  record.message_type = 0;
  bench.answer(record, {}, Outcome::no_reply);
  bench.turns(2);
  const auto read = bench.read(client);
  REQUIRE(read.size() == 1);
  CHECK(read[0].header.kind == FrameKind::reply);
  CHECK(read[0].header.message_type == 0);
  CHECK(read[0].payload.empty());
}

TEST_CASE("a full pool pauses reading and loses nothing") {
  PerimeterBench::Options options;
  options.pool = {.slabs = 2, .max_batch_bytes = 4096, .executors = 1, .last_index = 0};
  PerimeterBench bench(options);
  const auto first = bench.greeted();
  const auto second = bench.greeted();
  std::string bytes;
  for (std::uint64_t request = 1; request <= 200; ++request) bytes += deposit_frame(request);
  bench.network.set_chunk_bytes(3000);
  bench.network.client_sends(first, bytes);
  bench.turns(10);
  CHECK(bench.network.is_paused(first));
  CHECK(bench.pool.sealed() == 4);
  bench.network.client_sends(second, deposit_frame(1));
  bench.turn();
  CHECK(bench.network.is_paused(second));
  int executed = 0;
  for (int i = 0; i != 100; ++i) {
    executed += bench.execute();
    bench.turn();
  }
  CHECK(executed == 201);
  CHECK_FALSE(bench.network.is_paused(first));
  CHECK_FALSE(bench.network.is_paused(second));
  const auto read = bench.read(first);
  REQUIRE(read.size() == 200);
  for (std::uint64_t i = 0; i != 200; ++i) CHECK(read[i].header.request == i + 1);
  CHECK(bench.read(second).size() == 1);
}

TEST_CASE("a connection with too many unanswered requests is not read until they are answered") {
  PerimeterBench::Options options;
  options.perimeter.codec.max_in_flight = 4;
  PerimeterBench bench(options);
  const auto client = bench.greeted();
  const auto other = bench.greeted();
  std::string bytes;
  for (std::uint64_t request = 1; request <= 10; ++request) bytes += deposit_frame(request);
  bench.network.client_sends(client, bytes);
  bench.turns(3);
  CHECK(bench.stamped() == 4);
  CHECK(bench.network.is_paused(client));
  bench.network.client_sends(other, deposit_frame(1));
  bench.turn();
  CHECK(bench.stamped() == 5);
  for (int i = 0; i != 10; ++i) {
    bench.execute();
    bench.turn();
  }
  CHECK(bench.read(client).size() == 10);
  CHECK_FALSE(bench.network.is_paused(client));
}

TEST_CASE("a client that does not read is cut off at its limit, and its answers stop nobody") {
  PerimeterBench::Options options;
  options.perimeter.max_output_bytes = 2000;
  PerimeterBench bench(options);
  const auto deaf = bench.greeted();
  const auto other = bench.greeted();
  bench.network.set_reading(deaf, false);
  for (std::uint64_t request = 1; request <= 100; ++request) {
    if (bench.network.is_open(deaf)) bench.network.client_sends(deaf, deposit_frame(request));
    bench.turn();
    bench.execute();
  }
  bench.turns(2);
  CHECK_FALSE(bench.network.is_open(deaf));
  CHECK(bench.perimeter.metrics().cut_off_total.value() == 1);
  CHECK(bench.answers.is_empty());
  bench.network.client_sends(other, deposit_frame(1));
  bench.turn();
  bench.execute();
  bench.turns(2);
  CHECK(bench.read(other).size() == 1);
}

TEST_CASE("an answer whose client has gone is dropped, even when another took its place") {
  PerimeterBench bench;
  const auto client = bench.greeted();
  bench.network.client_sends(client, deposit_frame(1));
  bench.turn();
  bench.network.client_closes(client);
  bench.turn();
  const auto next = bench.greeted();
  bench.execute();
  bench.turns(2);
  CHECK(bench.perimeter.metrics().orphans_total.value() == 1);
  CHECK(bench.read(next).empty());
}

TEST_CASE("connections beyond the limit are closed as they come, and the place of one that left is used again") {
  PerimeterBench::Options options;
  options.perimeter.max_connections = 2;
  PerimeterBench bench(options);
  const auto first = bench.greeted();
  bench.greeted();
  const auto third = bench.network.connect();
  bench.turns(2);
  CHECK_FALSE(bench.network.is_open(third));
  CHECK(bench.perimeter.metrics().connections_refused_total.value() == 1);
  bench.network.client_closes(first);
  bench.turns(2);
  bench.greeted();
  CHECK(bench.greeting.header.kind == FrameKind::hello_ok);
}

TEST_CASE("a query goes to the executor that owns the actor and is never journaled") {
  PerimeterBench bench;
  const auto client = bench.greeted();
  const std::string payload = payload_of<GetBalance>(std::uint64_t{6});
  bench.network.client_sends(client, message_frame<GetBalance>(FrameKind::query, 3, 6, payload));
  bench.turn();
  CHECK(bench.stamped() == 0);
  const auto asked = bench.queries.peek();
  REQUIRE_FALSE(asked.empty());
  QueryFrame query;
  std::memcpy(&query, asked.data(), sizeof query);
  CHECK(query.request == 3);
  CHECK(query.key == 6);
  CHECK(query.length == payload.size());
  bench.queries.release();
  bench.push_answer({query.route, query.request, message_id<Balance>, 0}, {});
  bench.turns(2);
  const auto read = bench.read(client);
  REQUIRE(read.size() == 1);
  CHECK(read[0].header.request == 3);
}

TEST_CASE("a node without queries says so") {
  PerimeterBench::Options options;
  options.with_queries = false;
  PerimeterBench bench(options);
  const auto client = bench.greeted();
  bench.network.client_sends(
      client, message_frame<GetBalance>(FrameKind::query, 3, 6, payload_of<GetBalance>(std::uint64_t{6})));
  bench.turns(2);
  CHECK(bench.read(client).at(0).error().code == WireError::unsupported);
}

TEST_CASE("a full query ring holds the connection back and loses nothing") {
  PerimeterBench::Options options;
  options.perimeter.codec.reply_window = 4096;
  PerimeterBench bench(options);
  const auto client = bench.greeted();
  const std::string payload = payload_of<GetBalance>(std::uint64_t{6});
  std::string bytes;
  for (std::uint64_t request = 1; request <= 4000; ++request)
    bytes += message_frame<GetBalance>(FrameKind::query, request, 6, payload);
  bench.network.client_sends(client, bytes);
  bench.turns(3);
  CHECK(bench.network.is_paused(client));
  std::uint64_t expected = 0;
  for (int i = 0; i != 20; ++i) {
    for (auto asked = bench.queries.peek(); !asked.empty(); asked = bench.queries.peek()) {
      QueryFrame query;
      std::memcpy(&query, asked.data(), sizeof query);
      CHECK(query.request == ++expected);
      bench.queries.release();
    }
    bench.turn();
  }
  CHECK(expected == 4000);
}

TEST_CASE("after a client's goodbye what is in flight is answered, then the connection ends") {
  PerimeterBench bench;
  const auto client = bench.greeted();
  wire::FrameHeader goodbye;
  goodbye.kind = FrameKind::goodbye;
  bench.network.client_sends(client, deposit_frame(1) + frame(goodbye, ""));
  bench.turns(3);
  CHECK(bench.network.is_open(client));
  bench.execute();
  bench.turns(3);
  CHECK(bench.read(client).size() == 1);
  CHECK(bench.routes.size() == 1);
  bench.execute();  // the end of the session
  bench.turns(3);
  CHECK(bench.routes.empty());
  CHECK_FALSE(bench.network.is_open(client));
}

TEST_CASE("a stop answers what is in flight, takes nothing new, says goodbye and closes") {
  PerimeterBench bench;
  const auto busy = bench.greeted();
  const auto idle = bench.greeted();
  bench.network.client_sends(busy, deposit_frame(1));
  bench.turn();
  bench.perimeter.request_stop(1000);
  bench.turn();
  CHECK_FALSE(bench.network.is_listening());
  bench.network.client_sends(busy, deposit_frame(2));
  bench.turns(3);
  CHECK_FALSE(bench.perimeter.stopped());
  CHECK(bench.perimeter.deadline_ns() == 1000);
  bench.execute();
  bench.turns(5);
  CHECK(bench.perimeter.stopped());
  CHECK(bench.stamped() == 1);
  const auto read = bench.read(busy);
  REQUIRE(read.size() == 2);
  CHECK(read[0].header.kind == FrameKind::reply);
  CHECK(read[1].header.kind == FrameKind::goodbye);
  CHECK(bench.read(idle).at(0).header.kind == FrameKind::goodbye);
  CHECK(bench.network.open_count() == 0);
}

TEST_CASE(
    "a client that owes the rest of its hello or of a frame is closed in time, and one between two frames is not") {
  PerimeterBench::Options options;
  options.perimeter.frame_timeout_ns = 1000;
  PerimeterBench bench(options);
  const auto idle = bench.greeted();
  const auto dripping = bench.greeted();
  const auto quick = bench.greeted();
  bench.steady_ns = 100;
  bench.network.connect();  // and says nothing
  bench.turn();
  CHECK(bench.network.open_count() == 4);
  CHECK(bench.perimeter.deadline_ns() == 1100);
  const std::string whole = deposit_frame(1);
  bench.steady_ns = 200;
  bench.network.client_sends(dripping, whole.substr(0, 5));
  bench.network.client_sends(quick, whole.substr(0, 5));
  bench.turn();
  bench.steady_ns = 1099;
  bench.network.client_sends(dripping, whole.substr(5, 5));  // no more time for that
  bench.network.client_sends(quick, whole.substr(5) + deposit_frame(2).substr(0, 5));
  bench.turns(2);
  CHECK(bench.network.open_count() == 4);
  bench.steady_ns = 1100;
  bench.turns(2);
  CHECK(bench.network.open_count() == 3);  // the silent one has gone
  CHECK(bench.perimeter.deadline_ns() == 1200);
  bench.steady_ns = 1200;
  bench.turns(2);
  CHECK(bench.network.open_count() == 2);
  CHECK(bench.perimeter.deadline_ns() == 2099);  // of the frame that `quick` began anew
  bench.network.client_sends(quick, deposit_frame(2).substr(5));
  bench.turn();
  CHECK(bench.perimeter.deadline_ns() == INT64_MAX);
  bench.steady_ns = 1'000'000'000;
  bench.network.client_sends(idle, deposit_frame(1));
  bench.turns(2);
  CHECK(bench.network.open_count() == 2);
  CHECK(bench.stamped() == 3);
  CHECK(bench.perimeter.metrics().overdue_total.value() == 2);
}

TEST_CASE("a frame that waits for the node, not for its client, may take as long as that takes") {
  PerimeterBench::Options options;
  options.perimeter.frame_timeout_ns = 1000;
  options.perimeter.codec.max_in_flight = 4;
  options.perimeter.codec.reply_window = 4;
  PerimeterBench bench(options);
  const auto client = bench.greeted();
  std::string bytes;
  for (std::uint64_t request = 1; request <= 8; ++request) bytes += deposit_frame(request);
  bench.network.client_sends(client, bytes + deposit_frame(9).substr(0, 7));
  bench.turn();
  bench.steady_ns = 1'000'000;
  bench.turns(3);
  CHECK(bench.network.open_count() == 1);
  for (int i = 0; i != 6; ++i) {
    bench.turn();
    bench.execute();
  }
  bench.turns(2);
  CHECK(bench.stamped() == 8);
  CHECK(bench.perimeter.deadline_ns() == 1'001'000);  // now it is the client's turn
}

TEST_CASE("a stop ends at its deadline, whatever is unanswered and whoever does not read") {
  PerimeterBench::Options options;
  options.perimeter.linger_ns = 500;
  PerimeterBench bench(options);
  const auto client = bench.greeted();
  bench.network.client_sends(client, deposit_frame(1));
  bench.turn();
  bench.network.set_reading(client, false);
  bench.perimeter.request_stop(1000);
  bench.steady_ns = 1000;
  bench.turns(5);
  CHECK_FALSE(bench.perimeter.stopped());
  CHECK(bench.perimeter.metrics().unanswered_total.value() == 1);
  CHECK(bench.perimeter.deadline_ns() == 1500);
  bench.steady_ns = 1500;
  bench.turns(5);
  CHECK(bench.perimeter.stopped());
}
