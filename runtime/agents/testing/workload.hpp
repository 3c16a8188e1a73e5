// SPDX-License-Identifier: Apache-2.0
#pragma once

/// A workload for tests of execution: actors that do on request whatever may go right or wrong in a handler, and random
/// histories of such requests. Equal seeds give equal histories.

#include <chrono>
#include <cstdint>
#include <random>
#include <stdexcept>

#include "lockstep/actor.hpp"
#include "lockstep/encode.hpp"
#include "runtime/agents/frames.hpp"
#include "runtime/agents/memory_history.hpp"
#include "test_messages_generated.h"

namespace lockstep::testing {

enum class Op : std::uint32_t {
  answer,      ///< reply
  pass,        ///< a chain of `a` messages, starting at worker `b`
  spread,      ///< as pass, but every hop goes to two workers
  fail,        ///< throw after changing state, sending, replying and setting a timer
  alarm,       ///< set a timer in `a` ns
  cancel,      ///< cancel it
  draw,        ///< take a random number
  exhaust,     ///< allocate until the arena is full
  flood,       ///< send until a limit says no
  swallow,     ///< flood, catch the trap and go on
  reply_long,  ///< reply with a text of `a` bytes
  undeclared,  ///< send what Sends does not list
  ask_sink,    ///< through an actor of another type and back
  remember,    ///< keep the text's bytes in the arena
  silent,      ///< nothing at all
  whisper,     ///< send to an actor that says nothing
  fail_far,    ///< send to a worker that throws
  count,
};

struct Worker;

struct Sink {
  static constexpr auto name = "sink";
  static constexpr std::uint64_t arena_bytes = 8192;
  using Receives = lockstep::Receives<Pass, Bump>;
  using Sends = lockstep::Sends<Pass>;

  std::uint64_t passed = 0;

  void on(const Pass& m, Context& cx);
  void on(const Bump& m, Context& cx) {
    cx.reply<Count>(static_cast<std::int64_t>(passed += static_cast<std::uint64_t>(m.amount())));
  }
};

struct Worker {
  static constexpr std::uint64_t failing_alarm = 99;
  static constexpr std::uint64_t failing_pass = 98;

  static constexpr auto name = "worker";
  static constexpr std::uint64_t arena_bytes = 65536;
  using Receives = lockstep::Receives<Do, Pass, Alarm, Look>;
  using Sends = lockstep::Sends<Pass>;

  std::uint64_t digest = 0;  ///< of all that was handled, in order
  std::uint64_t handled = 0;
  std::int64_t last_now_ns = 0;
  std::uint64_t ran_back = 0;  ///< how often now() was less than before
  TimerId timer = TimerId::none;
  Link kept = {};
  std::uint32_t kept_bytes = 0;

  void start(Context& cx) { see(cx, 1); }
  void on(const Do& m, Context& cx);
  void on(const Pass& m, Context& cx);
  void on(const Alarm& m, Context& cx) {
    see(cx, m.tag());
    if (m.tag() == failing_alarm) throw std::runtime_error("as asked");
  }
  void on(const Look& m, Query& query) const { query.reply<Done>(m.what(), handled, ran_back); }

  void see(Context& cx, std::uint64_t value) {
    const std::int64_t now_ns = cx.now().time_since_epoch().count();
    ran_back += now_ns < last_now_ns ? 1U : 0U;
    last_now_ns = now_ns;
    ++handled;
    struct Seen {
      std::uint64_t digest, value, seq;
      std::int64_t now_ns;
      Address sender;
    };
    digest = xxh3_64(object_bytes(Seen{digest, value, cx.seq(), now_ns, cx.sender()}));
  }
  void keep(std::string_view text);
  static void flood(Context& cx) {
    while (true) cx.send<Pass>(ref<Worker>(cx.random_below(1000)), 0U, 0U, 0U);
  }
};

inline void Sink::on(const Pass& m, Context& cx) {
  ++passed;
  if (m.hops() > 0) cx.send<Pass>(ref<Worker>(m.a()), m.hops() - 1, m.a(), m.b());
}

inline void Worker::keep(std::string_view text) {
  Arena& arena = Arena::current();
  arena.free(kept, kept_bytes);
  kept_bytes = static_cast<std::uint32_t>(text.size());
  kept = kept_bytes == 0 ? Link{} : arena.allocate(kept_bytes);
  if (kept_bytes == 0) return;
  arena.before_write(arena.at(kept), kept_bytes);
  std::memcpy(arena.at(kept), text.data(), kept_bytes);
}

inline void Worker::on(const Pass& m, Context& cx) {
  see(cx, m.b());
  if (m.b() == failing_pass) throw std::runtime_error("as asked");
  if (m.hops() == 0) return cx.reply<Done>(static_cast<std::uint32_t>(Op::pass), handled, digest);
  const std::uint64_t workers = m.a();
  cx.send<Pass>(ref<Worker>(cx.random_below(workers)), m.hops() - 1, workers, m.b() + 1);
  if (m.b() >> 32U != 0) cx.send<Pass>(ref<Worker>(cx.random_below(workers)), m.hops() - 1, workers, m.b() + 2);
}

inline void Worker::on(const Do& m, Context& cx) {
  see(cx, m.a());
  switch (static_cast<Op>(m.op())) {
    case Op::answer:
      return cx.reply<Done>(m.op(), handled, digest);
    case Op::pass:
      return cx.send<Pass>(ref<Worker>(m.b()), static_cast<std::uint32_t>(m.a()), m.b() + 1, 0U);
    case Op::spread:
      return cx.send<Pass>(ref<Worker>(m.b()), static_cast<std::uint32_t>(m.a()), m.b() + 1, std::uint64_t{1} << 32U);
    case Op::fail:
      cx.send<Pass>(ref<Worker>(m.b()), 1U, m.b() + 1, 0U);
      cx.reply<Done>(m.op(), handled, digest);
      timer = cx.after<Alarm>(std::chrono::nanoseconds(1), m.a());
      keep("all this never was");
      throw std::runtime_error("as asked");
    case Op::alarm:
      cx.cancel(timer);
      timer = cx.after<Alarm>(std::chrono::nanoseconds(static_cast<std::int64_t>(m.a())), m.b());
      return cx.reply<Done>(m.op(), handled, digest);
    case Op::cancel:
      return cx.reply<Done>(m.op(), cx.cancel(timer) ? 1U : 0U, digest);
    case Op::draw:
      digest ^= cx.random();
      return cx.reply<Done>(m.op(), cx.random_below(m.a() + 1), cx.random());
    case Op::exhaust:
      while (true) static_cast<void>(Arena::current().allocate(1024));
    case Op::flood:
      return flood(cx);
    case Op::swallow:
      try {
        flood(cx);
      } catch (...) {
        digest = 0;
      }
      return;
    case Op::reply_long:
      return cx.reply<Do>(m.op(), 0U, 0U, std::string(m.a(), 'x'));
    case Op::undeclared:
      return cx.send<Bump>(ref<Sink>(m.a()), 1);
    case Op::ask_sink:
      return cx.send<Pass>(ref<Sink>(m.a() % 3), 1U, m.b(), m.a());
    case Op::remember:
      keep(m.text()->string_view());
      return cx.reply<Done>(m.op(), kept_bytes, digest);
    case Op::whisper:
      return cx.send<Pass>(ref<Sink>(m.a() % 3), 0U, 0U, 0U);
    case Op::fail_far:
      return cx.send<Pass>(ref<Worker>(m.b()), 0U, m.b() + 1, failing_pass);
    case Op::silent:
    case Op::count:
      return;
  }
}

inline const Application& workload() {
  return application<Worker, Sink>();
}

/// Small limits, so that a test reaches them.
inline Genesis workload_genesis() {
  return {.application = workload().digest(),
          .cluster_seed = 42,
          .shards = 8,
          .max_rounds = 6,
          .checkpoint_interval = 16,
          .handler_effects = 32,
          .handler_effect_bytes = 8192,
          .message_bytes = 256,
          .handler_write_bytes = 65536,
          .shard_effects = 256,
          .shard_effect_bytes = 65536,
          .shard_memory_bytes = 16U << 20U,
          .shard_mail_bytes = 8192};
}

class Workload {
 public:
  explicit Workload(std::uint64_t seed) : random_(seed), history_(workload_genesis(), workload().schema_id(), 1000) {}

  [[nodiscard]] MemoryHistory& history() { return history_; }

  /// Of one of three ephemeral sessions.
  void add(Op op, std::uint64_t worker, std::uint64_t a, std::uint64_t b, std::string_view text = "text") {
    const std::uint64_t session = session_number(0, 0, 1 + static_cast<std::uint32_t>(request_ % 3));
    add_request(session, ++request_, 0, op, worker, a, b, text);
  }
  void add_request(std::uint64_t session, std::uint64_t request, std::uint32_t ack_distance, Op op,
                   std::uint64_t worker, std::uint64_t a, std::uint64_t b, std::string_view text = "text") {
    history_.add({.target = ref<Worker>(worker).address(),
                  .message_type = message_id<Do>,
                  .session = session,
                  .request = request,
                  .ack_distance = ack_distance},
                 builder_.encode<Do>(static_cast<std::uint32_t>(op), a, b, text), time_ns_);
  }
  std::uint64_t open_session(std::uint64_t secret, std::uint64_t route, std::uint64_t resume = 0) {
    return history_.add_session_open(secret, route, time_ns_, resume);
  }
  /// By a goodbye over `route`; 0: by expiry.
  void close_session(std::uint64_t session, std::uint64_t route) {
    history_.add_session_close(session, route, time_ns_);
  }
  BatchView seal() { return history_.seal(time_ns_); }
  void advance(std::int64_t by_ns) { time_ns_ += by_ns; }

  /// A batch of random requests, a tick now and then.
  BatchView random_batch() {
    advance(static_cast<std::int64_t>(below(50)));
    if (below(8) == 0) return seal();
    for (std::uint64_t i = below(24); i > 0; --i) {
      advance(static_cast<std::int64_t>(below(5)));
      const auto op = static_cast<Op>(below(static_cast<std::uint64_t>(Op::count)));
      const std::uint64_t a = op == Op::reply_long ? below(400) : op == Op::alarm ? below(200) : below(9);
      add(op, below(workers), a, below(workers), std::string(below(100), 't'));
    }
    return seal();
  }

  static constexpr std::uint64_t workers = 20;
  std::uint64_t below(std::uint64_t bound) { return random_() % bound; }

 private:
  std::mt19937_64 random_;
  MemoryHistory history_;
  MessageBuilder builder_{65536};
  std::int64_t time_ns_ = 1000;
  std::uint64_t request_ = 0;
};

}  // namespace lockstep::testing
