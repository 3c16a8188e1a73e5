// SPDX-License-Identifier: Apache-2.0
#include "lockstep/test_kit.hpp"

#include <fmt/format.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <optional>

#include "base/clock.hpp"
#include "runtime/agents/frames.hpp"
#include "runtime/agents/memory_history.hpp"
#include "runtime/agents/replica.hpp"

namespace lockstep {
namespace {

constexpr std::size_t ring_bytes = std::size_t{2} << 20U;
constexpr std::uint32_t replay_executors = 3;
constexpr std::uint64_t client_session = session_number(0, 0, 1);
constexpr std::uint64_t shard_memory_bytes = 1ULL << 30U;  // of address space, several times 64

Genesis genesis_of(const Application& application, const TestKitOptions& options) {
  return {.application = application.digest(),
          .cluster_seed = options.seed,
          .checkpoint_interval = 16,
          .shard_memory_bytes = shard_memory_bytes};
}

std::int64_t ns_of(Time time) {
  return time.time_since_epoch().count();
}

struct LinesToStderr final : LogSink {
  void write(std::string_view line) override { std::fwrite(line.data(), 1, line.size(), stderr); }
};

/// A frame that came back, in memory of its own.
struct Received {
  explicit Received(std::span<const std::byte> bytes) : words(new std::uint64_t[bytes.size() / 8 + 1]) {
    std::memcpy(words.get(), bytes.data(), bytes.size());
  }
  [[nodiscard]] const ReplyFrame& frame() const { return *reinterpret_cast<const ReplyFrame*>(words.get()); }
  [[nodiscard]] const std::byte* payload() const { return reinterpret_cast<const std::byte*>(&frame() + 1); }

  std::unique_ptr<std::uint64_t[]> words;
};

const char* message_name(const Application& application, std::uint32_t message_type) {
  for (const ActorType& actor : application.actors()) {
    for (const Handler& handler : actor.handlers) {
      if (handler.message_type == message_type) return handler.message_name;
    }
  }
  return "a message no actor receives";
}

std::string describe(const ReplyFrame& frame) {
  switch (frame.outcome) {
    case Outcome::reply:
      return fmt::format("a message of type {:08x}", frame.message_type);
    case Outcome::trapped:
      return fmt::format("a trap of kind {}", frame.detail);
    case Outcome::no_reply:
      return "no reply";
    case Outcome::refused:
    case Outcome::session:
      break;  // of durable sessions only
  }
  return "nothing known";
}

/// Where two runs of one history part, found by running it twice more side by side.
std::string first_difference(const Application& application, const MemoryHistory& history) {
  Replica one(application, history.genesis(), {.executors = 1});
  Replica other(application, history.genesis(), {.executors = replay_executors});
  for (std::size_t i = 0; i < history.size(); ++i) {
    const BatchView batch = history.batch(i);
    one.run(batch);
    other.run(batch);
    const Checkpoint a = one.end();
    const Checkpoint b = other.end();
    if (a == b) continue;
    std::string where =
        fmt::format("first in batch {}, {}", batch.header->index, a.root != b.root ? "in state" : "in effects only");
    RecordCursor records(batch.payload);
    while (const auto record = records.next()) {
      where += fmt::format(", seq {} {} to key {}", record->header->seq,
                           message_name(application, record->header->message_type), record->header->key);
    }
    return where;
  }
  return "not when run twice more: something outside of the history takes part";
}

}  // namespace

struct TestKitCore::Core {
  Core(const Application& app, const TestKitOptions& options)
      : application(app),
        clock(ns_of(options.start)),
        replies(ring_bytes),
        queries(ring_bytes),
        history(genesis_of(app, options), app.schema_id(), ns_of(options.start)),
        live(app, history.genesis(), {.replies = &replies, .queries = &queries, .log = &log}) {
    run(history.batch(0));
  }

  void run(const BatchView& batch) {
    live.run(batch, [this] { collect(); });
    collect();
  }
  void collect() {
    for (auto frame = replies.peek(); !frame.empty(); frame = replies.peek()) {
      received.emplace_back(frame);
      replies.release();
    }
  }
  void fail(const std::string& text) const {
    if (!handler) throw TestFailure(text);
    handler(text);
  }
  /// The oldest reply, if it is as `expected` says.
  template <class Matches>
  bool take(const std::string& expected, Matches&& matches) {
    if (received.empty()) {
      fail(fmt::format("lockstep test kit: expected {}, but no reply is left", expected));
      return false;
    }
    taken.emplace(std::move(received.front()));
    received.pop_front();
    if (matches(taken->frame())) return true;
    fail(fmt::format("lockstep test kit: expected {}, but got {}", expected, describe(taken->frame())));
    return false;
  }
  void replay() const {
    Replica again(application, history.genesis(), {.executors = replay_executors});
    for (std::size_t i = 0; i < history.size(); ++i) again.run(history.batch(i));
    Replica& original = const_cast<Replica&>(live);
    if (again.end() == original.end() && again.checkpoints() == original.checkpoints()) return;
    const std::string text = fmt::format(
        "lockstep test kit: the history gave other bits when it was run again; {}. Something that is not "
        "state, message or Context takes part: a clock, an address, a global, unordered iteration",
        first_difference(application, history));
    if (handler) return handler(text);
    std::fputs((text + "\n").c_str(), stderr);
    std::abort();
  }

  const Application& application;
  LinesToStderr log;
  ManualClock clock;
  ByteRing replies;
  ByteRing queries;
  MemoryHistory history;
  Replica live;
  std::deque<Received> received;
  std::optional<Received> taken;
  std::function<void(const std::string&)> handler;
  std::uint64_t requests = 0;
  bool together = false;
  int exceptions = std::uncaught_exceptions();
};

TestKitCore::TestKitCore(const Application& application, const TestKitOptions& options)
    : builder_(Genesis{}.message_bytes), core_(std::make_unique<Core>(application, options)) {}

TestKitCore::~TestKitCore() {
  // A test that has failed already has its message; another would hide it.
  if (std::uncaught_exceptions() == core_->exceptions) core_->replay();
}

void TestKitCore::send_bytes(const Address& to, std::uint32_t message_type, std::span<const std::byte> payload) {
  core_->history.add(
      {.target = to, .message_type = message_type, .session = client_session, .request = ++core_->requests}, payload,
      core_->clock.real_ns());
  if (!core_->together) core_->run(core_->history.seal(core_->clock.real_ns()));
}

void TestKitCore::query_bytes(const Address& to, std::uint32_t message_type, std::span<const std::byte> payload) {
  const QueryFrame query{.route = client_session,
                         .request = ++core_->requests,
                         .key = to.key,
                         .actor_type = to.type,
                         .message_type = message_type,
                         .length = static_cast<std::uint32_t>(payload.size())};
  const std::span<std::byte> room = core_->queries.claim(sizeof query + payload.size());
  LOCKSTEP_ASSERT(!room.empty(), "the query ring holds one query and is read at once");
  std::memcpy(room.data(), &query, sizeof query);
  std::memcpy(room.data() + sizeof query, payload.data(), payload.size());
  core_->queries.publish();
  core_->live.answer_queries();
  core_->collect();
}

void TestKitCore::open_batch() {
  LOCKSTEP_ASSERT(!core_->together, "TestKit::together was called within itself");
  core_->together = true;
}

void TestKitCore::close_batch() {
  core_->together = false;
  core_->run(core_->history.seal(core_->clock.real_ns()));
}

const std::byte* TestKitCore::take_reply(std::uint32_t message_type, const char* name) {
  const bool is_it = core_->take(name, [&](const ReplyFrame& frame) {
    return frame.outcome == Outcome::reply && frame.message_type == message_type;
  });
  return is_it ? core_->taken->payload() : nullptr;
}

bool TestKitCore::expect_trap(TrapKind kind) {
  const auto detail = static_cast<std::uint32_t>(kind);
  return core_->take(fmt::format("a trap of kind {}", detail), [&](const ReplyFrame& frame) {
    return frame.outcome == Outcome::trapped && frame.detail == detail;
  });
}

bool TestKitCore::expect_no_reply() {
  return core_->take("no reply", [](const ReplyFrame& frame) { return frame.outcome == Outcome::no_reply; });
}

bool TestKitCore::expect_none() {
  if (core_->received.empty()) return true;
  core_->fail(fmt::format("lockstep test kit: expected no more replies, but got {}",
                          describe(core_->received.front().frame())));
  return false;
}

void TestKitCore::advance(Duration by) {
  const std::int64_t until_ns = core_->clock.real_ns() + by.count();
  // As the sequencer does: a tick when a timer is due or mail waits.
  for (std::int64_t due_ns = core_->live.next_due_ns(); due_ns <= until_ns; due_ns = core_->live.next_due_ns()) {
    if (due_ns > core_->clock.real_ns()) core_->clock.advance(due_ns - core_->clock.real_ns());
    core_->run(core_->history.seal(core_->clock.real_ns()));
  }
  core_->clock.advance(until_ns - core_->clock.real_ns());
}

Time TestKitCore::now() const {
  return Time(Duration(core_->clock.real_ns()));
}

Digest TestKitCore::hash() const {
  return core_->live.end().root;
}

void TestKitCore::on_failure(std::function<void(const std::string&)> handler) {
  core_->handler = std::move(handler);
}

}  // namespace lockstep
