// SPDX-License-Identifier: Apache-2.0
#pragma once

/// InProcess: a node without its outside: pool, sequencer, executor, reply ring. The bank's deposits are stamped by the
/// sequencer, sealed into batches with chain and digests, run by the executor with state roots on, and replies are
/// taken off their ring. One thread does all of it, so the figure is the cost of a message, not of a hand-over. With
/// sessions, it is that of a native client's request, which runs once and whose answer is kept; without, that of a RESP
/// command.

#include <algorithm>
#include <array>
#include <cstring>
#include <vector>

#include "bank.hpp"
#include "base/assert.hpp"
#include "base/clock.hpp"
#include "control_generated.h"
#include "runtime/agents/frames.hpp"
#include "runtime/agents/sequencer.hpp"
#include "runtime/execution.hpp"

namespace lockstep::bench {

class InProcess {
 public:
  InProcess(std::uint64_t accounts, std::uint32_t checkpoint_interval, std::uint64_t sessions)
      : accounts_(accounts),
        genesis_(genesis_of(checkpoint_interval)),
        execution_(bank_application(), genesis_,
                   {.executors = 1, .perimeters = 1, .slabs = 16, .max_batch_bytes = 256U << 10}),
        sequencer_(execution_.pool(), {}, {.seal_depth = 1, .schema_id = bank_application().schema_id()}),
        builder_(4096) {
    sequencer_.add_due(execution_.due(0));
    sequencer_.append_genesis(encode(genesis_), now_.real_ns);
    for (std::uint64_t i = 0; i < sessions; ++i) open_session();
    for (std::uint64_t account = 0; account < accounts_; ++account) {
      prepare(prepared_[0], account);
      submit(prepared_[0]);
    }
    finish();
  }

  static constexpr std::uint64_t messages_per_sample = 200'000;

  /// Sends deposits to random accounts and takes every reply; nanoseconds a message. A client's work, making the
  /// message and its check, is done before.
  double sample() {
    for (Prepared& message : prepared_) prepare(message, random() % accounts_);
    const std::int64_t started_ns = SystemClock{}.steady_ns();
    for (std::uint64_t i = 0; i < messages_per_sample; ++i) submit(prepared_[i % prepared_.size()]);
    finish();
    return static_cast<double>(SystemClock{}.steady_ns() - started_ns) / static_cast<double>(messages_per_sample);
  }

 private:
  static const Application& bank_application() { return application<bank::Branch>(); }
  static Genesis genesis_of(std::uint32_t checkpoint_interval) {
    Genesis genesis;
    genesis.application = bank_application().digest();
    genesis.checkpoint_interval = checkpoint_interval;
    return genesis;
  }

  std::uint64_t random() {
    state_ = state_ * 6364136223846793005ULL + 1442695040888963407ULL;
    return state_ >> 33;
  }

  struct Prepared {
    RecordHeader header;
    alignas(16) std::array<std::byte, 64> payload{};
  };

  void prepare(Prepared& message, std::uint64_t account) {
    const auto payload = builder_.encode<bank::Deposit>(account, std::int64_t{1});
    LOCKSTEP_ASSERT(payload.size() <= message.payload.size(), "a deposit is small");
    std::memcpy(message.payload.data(), payload.data(), payload.size());
    RecordHeader header;
    header.length = static_cast<std::uint32_t>(payload.size());
    header.actor_type = name_id(bank::Branch::name);
    header.message_type = message_id<bank::Deposit>;
    header.key = account % bank::branches;
    header.session = session_number(1, 0, 1);
    header.request = 1;
    header.check = record_check(header, payload);
    message.header = header;
  }

  void open_session() {
    flatbuffers::FlatBufferBuilder fbb;
    fbb.Finish(control::CreateSessionOpen(fbb, 1));
    RecordHeader header;
    header.kind = RecordKind::session_open;
    header.length = fbb.GetSize();
    header.request = session_number(1, 0, 1);
    append(header, fbb.GetBufferPointer());
    sessions_.push_back({sequencer_.last_seq(), 0});
  }

  void submit(const Prepared& message) {
    RecordHeader header = message.header;
    if (!sessions_.empty()) {
      Session& session = sessions_[sent_ % sessions_.size()];
      header.session = session.number;
      header.request = ++session.requests;
      header.ack_distance = static_cast<std::uint32_t>(std::min(session.requests, depth) - 1);
    }
    append(header, message.payload.data());
    ++sent_;
  }

  void append(const RecordHeader& header, const void* payload) {
    std::byte* room = sequencer_.claim(header.length);
    while (room == nullptr) {
      turn();
      room = sequencer_.claim(header.length);
    }
    std::memcpy(room, payload, header.length);
    sequencer_.commit(header, now_.real_ns += 100);
  }

  void turn() {
    sequencer_.do_work(now_);
    BatchPool& pool = execution_.pool();
    pool.written().publish(pool.sealed());
    pool.committed().publish(pool.sealed());
    execution_.agent(0).do_work(now_);
    while (execution_.board().poll()) ++checkpoints_;
    ByteRing& replies = execution_.replies(0, 0);
    for (auto frame = replies.peek(); !frame.empty(); frame = replies.peek()) {
      if (reinterpret_cast<const ReplyFrame*>(frame.data())->outcome != lockstep::Outcome::session) ++answered_;
      replies.release();
    }
    replies.flush();
  }

  void finish() {
    while (answered_ < sent_) turn();
    LOCKSTEP_ASSERT(answered_ == sent_, "every message is answered once");
  }

  /// As a client that keeps so many requests in flight.
  static constexpr std::uint64_t depth = 64;
  struct Session {
    std::uint64_t number = 0;
    std::uint64_t requests = 0;
  };
  std::vector<Session> sessions_;
  std::vector<Prepared> prepared_ = std::vector<Prepared>(16'384);
  std::uint64_t accounts_;
  Genesis genesis_;
  Execution execution_;
  Sequencer sequencer_;
  MessageBuilder builder_;
  Now now_{1'700'000'000'000'000'000, 0};
  std::uint64_t state_ = 1;
  std::uint64_t sent_ = 0;
  std::uint64_t answered_ = 0;
  std::uint64_t checkpoints_ = 0;
};

}  // namespace lockstep::bench
