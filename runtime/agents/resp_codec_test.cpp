// SPDX-License-Identifier: Apache-2.0
#include "runtime/agents/resp_codec.hpp"

#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "runtime/agents/testing/bank_resp.hpp"
#include "runtime/agents/testing/perimeter_bench.hpp"

using namespace lockstep;
using namespace lockstep::testing;

namespace {

struct RespBench : PerimeterBench {
  explicit RespBench(Options options = {}) : PerimeterBench(with_resp(options)) {
    LOCKSTEP_ASSERT(perimeter.listen({}, CodecKind::resp).has_value(), "a fake network can listen");
  }
  static Options with_resp(Options options) {
    options.perimeter.resp = bank_resp_application();
    return options;
  }
  io::ConnectionId client() { return network.connect(1); }
  std::string talk(io::ConnectionId client, std::string_view bytes) {
    network.client_sends(client, bytes);
    for (int i = 0; i != 4; ++i) {
      turn();
      execute();
    }
    turns(2);
    return network.client_reads(client);
  }
  /// The sealed records that nobody has executed.
  std::vector<RecordHeader> waiting() {
    std::vector<RecordHeader> records;
    for (std::uint64_t index = executed + 1; index <= pool.sealed(); ++index) {
      RecordCursor cursor(pool.view(index).payload);
      while (const auto record = cursor.next()) records.push_back(*record->header);
    }
    executed = pool.sealed();
    pool.written().publish(executed);
    pool.committed().publish(executed);
    pool.executed(0).publish(executed);
    return records;
  }
  void answer_amount(const RecordHeader& record, std::int64_t amount) {
    const std::string payload = payload_of<Deposit>(std::uint64_t{1}, amount);
    answer(record, std::as_bytes(std::span(payload)));
  }
};

}  // namespace

TEST_CASE("a command is one message to one actor, and its reply is the answer") {
  RespBench bench;
  const auto client = bench.client();
  CHECK(bench.talk(client, "*3\r\n$7\r\nDEPOSIT\r\n$1\r\n7\r\n$2\r\n42\r\n") == ":42\r\n");
  CHECK(bench.talk(client, "deposit 7 -5\r\n") == ":-5\r\n");
  RecordCursor records(bench.pool.view(1).payload);
  const auto record = records.next();
  CHECK(record->header->actor_type == teller_type);
  CHECK(record->header->key == 7);
  CHECK(record->header->request == 1);
}

TEST_CASE("a number that the client did not send is the usual error, not what an earlier command left") {
  RespBench bench;
  const auto client = bench.client();
  CHECK(bench.talk(client, "DEPOSIT 7 5\r\nBIG\r\n") == ":5\r\n-ERR wrong number of arguments for 'big' command\r\n");
}

TEST_CASE("answers leave in the order of the commands, in whatever order they arrive") {
  RespBench bench;
  const auto client = bench.client();
  bench.network.client_sends(client, "DEPOSIT 1 1\r\nDEPOSIT 1 2\r\nPING\r\nDEPOSIT 1 3\r\nECHO last\r\n");
  bench.turns(2);
  const auto records = bench.waiting();
  REQUIRE(records.size() == 3);
  CHECK(records[2].ack_distance == 3);  // three commands before it are unanswered
  bench.answer_amount(records[2], 3);
  bench.turns(2);
  CHECK(bench.network.client_reads(client).empty());
  bench.answer_amount(records[0], 1);
  bench.turns(2);
  CHECK(bench.network.client_reads(client) == ":1\r\n");
  bench.answer_amount(records[1], 2);
  bench.turns(2);
  CHECK(bench.network.client_reads(client) == ":2\r\n+PONG\r\n:3\r\n$4\r\nlast\r\n");
}

TEST_CASE("SELECT belongs to a connection and to the commands behind it") {
  RespBench bench;
  const auto client = bench.client();
  CHECK(bench.talk(client, "DEPOSIT 1 1\r\nSELECT 3\r\nDEPOSIT 1 1\r\n") == ":1\r\n+OK\r\n:1000\r\n");
  CHECK(bench.talk(bench.client(), "DEPOSIT 1 1\r\n") == ":1\r\n");
  CHECK(bench.talk(client, "SELECT 16\r\n") == "-ERR DB index is out of range\r\n");
}

TEST_CASE("what tools and libraries ask a server first is answered") {
  RespBench bench;
  const auto client = bench.client();
  CHECK(bench.talk(client, "PING\r\n") == "+PONG\r\n");
  CHECK(bench.talk(client, "PING \"a b\"\r\n") == "$3\r\na b\r\n");
  CHECK(bench.talk(client, "COMMAND\r\n") == "*0\r\n");
  CHECK(bench.talk(client, "CLIENT SETNAME me\r\nCLIENT GETNAME\r\n") == "+OK\r\n$2\r\nme\r\n");
  CHECK(bench.talk(client, "CLIENT SETINFO LIB-NAME x\r\n") == "+OK\r\n");
  CHECK(bench.talk(client, "CONFIG GET save\r\n") == "*2\r\n$4\r\nsave\r\n$0\r\n\r\n");
  CHECK(bench.talk(client, "CONFIG GET nothing\r\n") == "*0\r\n");
  CHECK(bench.talk(client, "INFO\r\n").find("redis_version:") != std::string::npos);
  CHECK(bench.talk(client, "HELLO 3\r\n") == "-NOPROTO unsupported protocol version\r\n");
  CHECK(bench.talk(client, "HELLO 2\r\n").substr(0, 5) == "*12\r\n");
}

TEST_CASE("a client's id is positive, its own, and the same wherever it is told") {
  RespBench bench;
  const auto first = bench.client();
  const auto second = bench.client();
  const std::string id = bench.talk(first, "CLIENT ID\r\n");
  REQUIRE(id.size() > 3);
  CHECK((id[0] == ':' && id[1] >= '1' && id[1] <= '9'));
  CHECK(bench.talk(second, "CLIENT ID\r\n") != id);
  CHECK(bench.talk(first, "HELLO 2\r\n").find("$2\r\nid\r\n" + id) != std::string::npos);
}

TEST_CASE("commands that cannot be are answered, and the connection goes on") {
  RespBench bench;
  const auto client = bench.client();
  CHECK(bench.talk(client, "NONSENSE\r\n") == "-ERR unknown command 'NONSENSE'\r\n");
  CHECK(bench.talk(client, "*1\r\n$3\r\n\r\n\x01\r\n") == "-ERR unknown command '??\?'\r\n");
  CHECK(bench.talk(client, "DEPOSIT 1\r\n") == "-ERR wrong number of arguments for 'deposit' command\r\n");
  CHECK(bench.talk(client, "DEPOSIT 1 1.5\r\n") == "-ERR value is not an integer or out of range\r\n");
  CHECK(bench.talk(client, "BIG 100000\r\n") == "-ERR the message is larger than the node accepts\r\n");
  CHECK(bench.talk(client, "BIG 1000\r\n") == "$5\r\nother\r\n");
}

TEST_CASE("a trap and a missing reply are answers too") {
  RespBench bench;
  const auto client = bench.client();
  bench.network.client_sends(client, "DEPOSIT 1 1\r\nDEPOSIT 1 2\r\n");
  bench.turns(2);
  const auto records = bench.waiting();
  bench.answer(records[0], {}, Outcome::trapped, 4);
  bench.answer(records[1], {}, Outcome::no_reply);
  bench.turns(2);
  CHECK(bench.network.client_reads(client) ==
        "-ERR the handler failed and its writes were undone (trap effect_bytes)\r\n+OK\r\n");
}

TEST_CASE("of two replies to one command the first is the answer, and the next command has its own") {
  RespBench bench;
  const auto client = bench.client();
  bench.network.client_sends(client, "DEPOSIT 1 1\r\nDEPOSIT 1 2\r\n");
  bench.turns(2);
  const auto records = bench.waiting();
  REQUIRE(records.size() == 2);
  bench.answer_amount(records[0], 10);
  bench.answer_amount(records[0], 11);
  bench.answer_amount(records[1], 20);
  bench.answer_amount(records[1], 21);
  bench.turns(2);
  CHECK(bench.network.client_reads(client) == ":10\r\n:20\r\n");
}

TEST_CASE("bytes that are not RESP end the connection behind the answers it has earned") {
  RespBench bench;
  const auto client = bench.client();
  const auto other = bench.client();
  bench.network.client_sends(client, "DEPOSIT 1 1\r\n*1\r\n:5\r\nPING\r\n");
  bench.turns(3);
  CHECK(bench.network.is_open(client));
  bench.answer_amount(bench.waiting().at(0), 1);
  bench.turns(3);
  CHECK(bench.network.client_reads(client) == ":1\r\n-ERR Protocol error: expected '$'\r\n");
  CHECK_FALSE(bench.network.is_open(client));
  CHECK(bench.talk(other, "PING\r\n") == "+PONG\r\n");
}

TEST_CASE("QUIT is answered, then the connection ends") {
  RespBench bench;
  const auto client = bench.client();
  CHECK(bench.talk(client, "DEPOSIT 1 1\r\nQUIT\r\nPING\r\n") == ":1\r\n+OK\r\n");
  CHECK_FALSE(bench.network.is_open(client));
}

TEST_CASE("a pipeline longer than the limit is read as fast as it is answered") {
  PerimeterBench::Options options;
  options.perimeter.codec.max_in_flight = 8;
  RespBench bench(options);
  const auto client = bench.client();
  std::string bytes;
  std::string expected;
  for (int i = 0; i != 100; ++i) {
    bytes += "DEPOSIT 1 " + std::to_string(i) + "\r\nPING\r\n";
    expected += ":" + std::to_string(i) + "\r\n+PONG\r\n";
  }
  bench.network.client_sends(client, bytes);
  std::string read;
  for (int i = 0; i != 100; ++i) {
    bench.turn();
    bench.execute();
    read += bench.network.client_reads(client);
  }
  bench.turns(2);
  read += bench.network.client_reads(client);
  CHECK(read == expected);
}

TEST_CASE("a full pool holds a pipeline back without losing or repeating a command") {
  PerimeterBench::Options options;
  options.pool = {.slabs = 2, .max_batch_bytes = 4096, .executors = 1, .last_index = 0};
  RespBench bench(options);
  const auto client = bench.client();
  std::string bytes;
  for (int i = 0; i != 300; ++i) bytes += "DEPOSIT 1 " + std::to_string(i) + "\r\n";
  bench.network.set_chunk_bytes(977);
  bench.network.client_sends(client, bytes);
  std::string read;
  for (int i = 0; i != 100; ++i) {
    if (i % 3 == 0) bench.execute();
    bench.turn();
    read += bench.network.client_reads(client);
  }
  std::string expected;
  for (int i = 0; i != 300; ++i) expected += ":" + std::to_string(i) + "\r\n";
  CHECK(read == expected);
}

TEST_CASE("a perimeter that maps no commands does not listen for them") {
  PerimeterBench bench;
  const auto refused = bench.perimeter.listen({}, CodecKind::resp);
  REQUIRE_FALSE(refused.has_value());
  CHECK(refused.error().code == ErrorCode::usage);
}
