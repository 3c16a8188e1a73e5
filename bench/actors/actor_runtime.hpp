// SPDX-License-Identifier: Apache-2.0
#pragma once

/// What the runtimes of the comparison have in common: one actor that holds accounts, transactions sent to it from
/// outside, and an answer to each. Every runtime applies the same transactions in the same order, so that it ends with
/// the same balances.
///
/// Plain C++17: a peer's file may be compiled for an older standard than ours.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

namespace lockstep::bench {

/// Moves `amount` between two accounts, unless the first has less.
struct Transaction {
  std::uint64_t number = 0;  ///< counts the transactions of a run, from 0
  std::uint64_t from = 0;
  std::uint64_t to = 0;
  std::int64_t amount = 0;
};

inline constexpr std::size_t account_count = 1024;
/// So little that some transactions are refused, and the order of all of them matters.
inline constexpr std::int64_t first_balance = 500;

/// The state of the actor, for runtimes without a state of their own.
class Accounts {
 public:
  /// False when the first account has too little.
  bool apply(const Transaction& transaction) {
    std::int64_t& from = balances_[transaction.from];
    if (from < transaction.amount) return false;
    from -= transaction.amount;
    balances_[transaction.to] += transaction.amount;
    return true;
  }
  const std::vector<std::int64_t>& balances() const { return balances_; }

 private:
  std::vector<std::int64_t> balances_ = std::vector<std::int64_t>(account_count, first_balance);
};

/// The transactions of every run: pseudo-random and always the same.
class TransactionStream {
 public:
  Transaction next() {
    state_ ^= state_ << 13U;
    state_ ^= state_ >> 7U;
    state_ ^= state_ << 17U;
    return {number_++, state_ % account_count, (state_ >> 32U) % account_count,
            static_cast<std::int64_t>(state_ >> 20U & 63U)};
  }

 private:
  std::uint64_t state_ = 88172645463325252U;
  std::uint64_t number_ = 0;
};

/// Who the answers go to. Called by one thread at a time, whichever the runtime delivers on.
class Answers {
 public:
  virtual void take(std::uint64_t number, bool accepted) = 0;

 protected:
  ~Answers() = default;
};

/// One runtime with its threads, from its start to its end. send(), turn() and balances() are called by one thread.
class ActorRuntime {
 public:
  ActorRuntime() = default;
  ActorRuntime(const ActorRuntime&) = delete;
  ActorRuntime& operator=(const ActorRuntime&) = delete;
  virtual ~ActorRuntime() = default;

  /// False when there is no room now.
  virtual bool send(const Transaction& transaction) = 0;
  /// What the sending thread does between sends.
  virtual void turn() = 0;
  /// Of all accounts; only when every transaction was answered.
  virtual std::vector<std::int64_t> balances() = 0;
};

/// Each runtime has `threads` threads beside the sending one, and answers to `answers`, which outlives it.
std::unique_ptr<ActorRuntime> make_mutex_pool(Answers& answers, unsigned threads);
std::unique_ptr<ActorRuntime> make_tbb_pool(Answers& answers, unsigned threads);
std::unique_ptr<ActorRuntime> make_caf(Answers& answers, unsigned threads);

}  // namespace lockstep::bench
