// SPDX-License-Identifier: Apache-2.0
#pragma once

/// Ledger: an application whose state has a size that a bench chooses, and of which each message changes one page
/// anywhere; and LedgerNode: sequencer, executor and replies of it, without a network. What the benches of snapshots
/// and of recovery share.

#include <array>
#include <cstring>
#include <memory>

#include "bank.hpp"
#include "base/assert.hpp"
#include "runtime/agents/frames.hpp"
#include "runtime/agents/sequencer.hpp"
#include "runtime/execution.hpp"

namespace lockstep::bench {

inline constexpr std::uint64_t ledgers = 16;
inline constexpr std::uint32_t ledger_bytes = 16U << 20U;  ///< of each: 256 MiB together

struct Ledger {
  static constexpr auto name = "ledger";
  static constexpr std::uint64_t arena_bytes = 40U << 20U;
  using Receives = lockstep::Receives<bank::Deposit>;
  using Schema = bank::DepositBinarySchema;

  Link cells = {};

  void start(Context&) { cells = Arena::current().allocate(ledger_bytes); }
  void on(const bank::Deposit& m, Context& cx) {
    std::byte* const cell = Arena::current().at(cells) + (m.account() * 64) % ledger_bytes;
    Arena::current().before_write(cell, sizeof(std::int64_t));
    std::int64_t amount = 0;
    std::memcpy(&amount, cell, sizeof amount);
    amount += m.amount();
    std::memcpy(cell, &amount, sizeof amount);
    cx.reply<bank::Balance>(m.account(), amount);
  }
};

class LedgerNode {
 public:
  static const Application& application() { return lockstep::application<Ledger>(); }
  static Genesis genesis() {
    Genesis genesis;
    genesis.application = application().digest();
    return genesis;
  }

  LedgerNode()
      : execution_(application(), genesis(),
                   {.executors = 1,
                    .perimeters = 1,
                    .slabs = 64,
                    .max_batch_bytes = 256U << 10,
                    .sweep = {.quota_bytes = 512U << 20U}}),
        sequencer_(execution_.pool(), {},
                   {.seal_depth = 1,
                    .schema_id = application().schema_id(),
                    .snapshots = execution_.snapshots(),
                    .checkpoint_interval = genesis().checkpoint_interval}),
        builder_(4096) {
    sequencer_.add_due(execution_.due(0));
    sequencer_.append_genesis(encode(genesis()), first_time_ns);
  }

  [[nodiscard]] Execution& execution() { return execution_; }
  [[nodiscard]] Sequencer& sequencer() { return sequencer_; }

  /// A deposit into a random cell; false when there is no room now. `request` comes back with the answer.
  bool send(std::uint64_t request, std::int64_t time_ns) {
    const std::uint64_t account = random();
    const auto payload = builder_.encode<bank::Deposit>(account, std::int64_t{1});
    std::byte* const room = sequencer_.claim(payload.size());
    if (room == nullptr) return false;
    std::memcpy(room, payload.data(), payload.size());
    RecordHeader header;
    header.length = static_cast<std::uint32_t>(payload.size());
    header.actor_type = name_id(Ledger::name);
    header.message_type = message_id<bank::Deposit>;
    header.key = account >> 20 & (ledgers - 1);
    header.session = session_number(1, 0, 1);
    header.request = request;
    header.check = record_check(header, payload);
    sequencer_.commit(header, first_time_ns + time_ns);
    ++sent_;
    return true;
  }

  /// Calls take(request) for each answer that has come.
  template <class Take>
  void take_answers(Take&& take) {
    ByteRing& replies = execution_.replies(0, 0);
    for (auto frame = replies.peek(); !frame.empty(); frame = replies.peek()) {
      take(reinterpret_cast<const ReplyFrame*>(frame.data())->request);
      ++answered_;
      replies.release();
    }
    replies.flush();
  }
  [[nodiscard]] std::uint64_t sent() const { return sent_; }
  [[nodiscard]] std::uint64_t answered() const { return answered_; }

 private:
  static constexpr std::int64_t first_time_ns = 1'700'000'000'000'000'000;

  std::uint64_t random() {
    state_ = state_ * 6364136223846793005ULL + 1442695040888963407ULL;
    return state_ >> 20;
  }

  Execution execution_;
  Sequencer sequencer_;
  MessageBuilder builder_;
  std::uint64_t state_ = 1;
  std::uint64_t sent_ = 0;
  std::uint64_t answered_ = 0;
};

}  // namespace lockstep::bench
