// SPDX-License-Identifier: Apache-2.0
#pragma once

/// NodeBench: a perimeter with its sequencer and pool over some Network, and a journal and an executor played by the
/// test: everything sealed is committed, sessions open, and every request and query is answered with its own payload,
/// when the test says so. PerimeterBench is one over a FakeNetwork.

#include <cstring>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "lockstep/encode.hpp"
#include "lockstep/wire.hpp"
#include "runtime/agents/frames.hpp"
#include "runtime/agents/perimeter.hpp"
#include "runtime/agents/sequencer.hpp"
#include "runtime/agents/testing/bank_application.hpp"
#include "runtime/agents/testing/fake_network.hpp"

namespace lockstep::testing {

inline constexpr std::uint32_t teller_type = name_id(Teller::name);

/// A frame as a client sends it.
inline std::string frame(wire::FrameHeader header, std::string_view payload) {
  header.length = static_cast<std::uint32_t>(payload.size());
  std::string bytes(reinterpret_cast<const char*>(&header), sizeof header);
  return bytes.append(payload);
}

/// One that opens a session, unless it says otherwise.
inline std::string hello_frame(const wire::Hello& hello = {.capabilities = wire::capability_sessions}) {
  wire::FrameHeader header;
  header.kind = wire::FrameKind::hello;
  return frame(header, {reinterpret_cast<const char*>(&hello), sizeof hello});
}

template <Message M, class... Args>
std::string payload_of(const Args&... args) {
  thread_local MessageBuilder builder(1U << 16);
  const auto bytes = builder.encode<M>(args...);
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

template <Message M>
std::string message_frame(wire::FrameKind kind, std::uint64_t request, std::uint64_t key, std::string_view payload) {
  wire::FrameHeader header;
  header.kind = kind;
  header.request = request;
  header.message_type = message_id<M>;
  header.actor_type = teller_type;
  header.key = key;
  return frame(header, payload);
}

inline std::string deposit_frame(std::uint64_t request, std::uint64_t key = 1, std::int64_t amount = 5) {
  return message_frame<Deposit>(wire::FrameKind::request, request, key, payload_of<Deposit>(key, amount));
}

/// A frame as a client reads it.
struct ReadFrame {
  wire::FrameHeader header;
  std::string payload;
  [[nodiscard]] wire::ErrorBody error() const {
    wire::ErrorBody body;
    std::memcpy(&body, payload.data(), sizeof body);
    return body;
  }
};

inline std::vector<ReadFrame> frames_of(std::string_view bytes) {
  std::vector<ReadFrame> frames;
  while (bytes.size() >= sizeof(wire::FrameHeader)) {
    ReadFrame& read = frames.emplace_back();
    std::memcpy(&read.header, bytes.data(), sizeof read.header);
    LOCKSTEP_ASSERT(bytes.size() >= sizeof read.header + read.header.length, "the node sent half a frame");
    read.payload = bytes.substr(sizeof read.header, read.header.length);
    bytes.remove_prefix(sizeof read.header + read.header.length);
  }
  LOCKSTEP_ASSERT(bytes.empty(), "the node sent half a header");
  return frames;
}

struct NodeBench {
  struct Options {
    Perimeter::Options perimeter{};
    BatchPool::Options pool{.slabs = 8, .max_batch_bytes = 64U << 10, .executors = 1, .last_index = 0};
    bool with_queries = true;
  };
  NodeBench(io::Network& network, const Options& options)
      : pool(options.pool),
        sequencer(pool, {}, {.seal_depth = 2, .schema_id = 1}),
        answers(1U << 20),
        queries(1U << 18),
        perimeter(network, bank_application(), routes_of(options), limited(options)) {
    perimeter.add_answers(answers);
  }

  /// One turn of perimeter and sequencer.
  int turn() {
    const Now now{.real_ns = 1'000'000 + steady_ns, .steady_ns = steady_ns};
    return perimeter.do_work(now) + sequencer.do_work(now);
  }
  void turns(int count) {
    for (int i = 0; i != count; ++i) turn();
  }

  /// Commits what is sealed and answers its records; returns how many requests there were.
  int execute() { return execute(pool.sealed()); }
  /// As long as there are only records of sessions.
  int execute_sessions() {
    std::uint64_t until = executed;
    while (until != pool.sealed() && !has_requests(pool.view(until + 1))) ++until;
    return execute(until);
  }
  int execute(std::uint64_t until) {
    int requests = 0;
    for (std::uint64_t index = executed + 1; index <= until; ++index) {
      const BatchView batch = pool.view(index);
      LOCKSTEP_ASSERT(batch_defect(batch) == std::nullopt, "a sealed batch is damaged");
      RecordCursor cursor(batch.payload);
      while (const auto record = cursor.next()) {
        if (record->header->kind == RecordKind::message) {
          answer(*record->header, record->payload);
          ++requests;
        } else {
          answer_session(*record->header);
        }
      }
    }
    executed = until;
    pool.written().publish(until);
    pool.committed().publish(until);
    pool.executed(0).publish(until);
    return requests;
  }
  /// Answers the queries that wait; returns how many.
  int execute_queries() {
    int count = 0;
    for (auto asked = queries.peek(); !asked.empty(); asked = queries.peek(), ++count) {
      QueryFrame query;
      std::memcpy(&query, asked.data(), sizeof query);
      push_answer({query.route, query.request, query.message_type, query.length},
                  asked.subspan(sizeof query, query.length));
      queries.release();
    }
    return count;
  }
  void answer(const RecordHeader& record, std::span<const std::byte> payload, Outcome outcome = Outcome::reply,
              std::uint32_t detail = 0) {
    push_answer({.route = is_durable(record.session) ? routes.at(record.session) : record.session,
                 .request = record.request,
                 .message_type = record.message_type,
                 .length = static_cast<std::uint32_t>(payload.size()),
                 .outcome = outcome,
                 .detail = detail},
                payload);
  }
  /// Opens, resumes or closes a session as executors do, but asks for no secret.
  void answer_session(const RecordHeader& record) {
    const std::uint64_t session = record.session != 0 ? record.session : record.seq;
    SessionEvent event = SessionEvent::closed;
    if (record.kind == RecordKind::session_close) {
      routes.erase(session);
    } else if (record.session == 0 || routes.contains(session)) {
      event = record.session == 0 ? SessionEvent::opened : SessionEvent::resumed;
      routes[session] = record.request;
    } else {
      event = SessionEvent::unknown;
    }
    push_answer({.route = record.request,
                 .request = session,
                 .outcome = Outcome::session,
                 .detail = static_cast<std::uint32_t>(event)},
                {});
  }
  void push_answer(const ReplyFrame& reply, std::span<const std::byte> payload) {
    const std::span<std::byte> to = answers.claim(sizeof reply + payload.size());
    LOCKSTEP_ASSERT(!to.empty(), "the test's answers outgrew their ring");
    std::memcpy(to.data(), &reply, sizeof reply);
    if (!payload.empty()) std::memcpy(to.data() + sizeof reply, payload.data(), payload.size());
    answers.publish();
  }

  BatchPool pool;
  Sequencer sequencer;
  ByteRing answers;
  ByteRing queries;
  Perimeter perimeter;
  /// Requests that were stamped; not the records of sessions.
  [[nodiscard]] std::uint64_t stamped() const {
    return sequencer.last_seq() - perimeter.metrics().session_records_total.value();
  }
  std::int64_t steady_ns = 0;
  std::uint64_t executed = 0;
  std::map<std::uint64_t, std::uint64_t> routes;  ///< of the sessions that are open

 private:
  static bool has_requests(const BatchView& batch) {
    RecordCursor cursor(batch.payload);
    while (const auto record = cursor.next()) {
      if (record->header->kind == RecordKind::message) return true;
    }
    return false;
  }
  Intake::Routes routes_of(const Options& options) {
    Intake::Routes made;
    made.sequencer = &sequencer;
    if (options.with_queries) {
      made.queries = {&queries};
      made.executor_of = [](const void*, const Address&) { return 0U; };
    }
    return made;
  }
  static Perimeter::Options limited(const Options& options) {
    Perimeter::Options made = options.perimeter;
    made.max_payload_bytes = std::min<std::size_t>(made.max_payload_bytes, options.pool.max_batch_bytes - 64);
    return made;
  }
};

struct FakeNetworkHolder {
  FakeNetwork network;
};

struct PerimeterBench : FakeNetworkHolder, NodeBench {
  PerimeterBench() : PerimeterBench(Options{}) {}
  explicit PerimeterBench(const Options& options) : NodeBench(network, options) {
    LOCKSTEP_ASSERT(perimeter.listen({}, CodecKind::native).has_value(), "a fake network can listen");
  }

  /// A client that has said hello; what it read is taken.
  io::ConnectionId greeted() {
    const io::ConnectionId client = network.connect();
    network.client_sends(client, hello_frame());
    turns(2);
    execute();
    turns(2);
    greeting = frames_of(network.client_reads(client)).at(0);
    return client;
  }
  std::vector<ReadFrame> read(io::ConnectionId client) { return frames_of(network.client_reads(client)); }

  ReadFrame greeting;
};

}  // namespace lockstep::testing
