// SPDX-License-Identifier: Apache-2.0
#pragma once

/// The bank, lockstep's running example: branches hold accounts; money moves between branches as messages; interest
/// comes by timer. Whatever the order and the number of cores, the sum over all branches plus what is under way is
/// conserved.

#include <lockstep/actor.hpp>

#include <algorithm>
#include <cstdint>

#include "bank_bfbs_generated.h"
#include "bank_generated.h"

namespace bank {

using namespace std::chrono_literals;

/// How many branches share the accounts. A client sends to the branch of the account it asks about.
inline constexpr std::uint64_t branches = 16;

/// No account holds more, so that neither two balances nor the sum over millions of accounts overflows.
inline constexpr std::int64_t largest_balance = 1'000'000'000'000;

struct Branch {
  static constexpr auto name = "bank.Branch";
  using Receives = lockstep::Receives<Deposit, Withdraw, Transfer, Credit, Refund, Accrue, GetBalance, GetTotal>;
  using Sends = lockstep::Sends<Credit, Refund>;
  using Schema = DepositBinarySchema;

  lockstep::Map<std::uint64_t, std::int64_t> accounts;  // in the actor's arena: hashed, replayed, undone
  std::uint64_t rejected = 0;

  void start(lockstep::Context& cx) { cx.after<Accrue>(24h, 50U); }

  void on(const Deposit& m, lockstep::Context& cx) {
    if (!holds(m.account(), cx)) return reject(m.account(), Reason::WrongBranch, cx);
    if (m.amount() <= 0 || m.amount() > largest_balance) return reject(m.account(), Reason::BadAmount, cx);
    std::int64_t& balance = accounts[m.account()];
    if (balance > largest_balance - m.amount()) return reject(m.account(), Reason::TooRich, cx);
    balance += m.amount();
    cx.reply<Balance>(m.account(), balance);
  }

  void on(const Withdraw& m, lockstep::Context& cx) {
    if (m.amount() <= 0) return reject(m.account(), Reason::BadAmount, cx);
    std::int64_t* balance = accounts.find(m.account());
    if (balance == nullptr || *balance < m.amount()) return reject(m.account(), Reason::InsufficientFunds, cx);
    *balance -= m.amount();
    cx.reply<Balance>(m.account(), *balance);
  }

  /// Takes the money here and sends it on; the branch that credits it answers the client.
  void on(const Transfer& m, lockstep::Context& cx) {
    if (m.amount() <= 0) return reject(m.from(), Reason::BadAmount, cx);
    std::int64_t* balance = accounts.find(m.from());
    if (balance == nullptr || *balance < m.amount()) return reject(m.from(), Reason::InsufficientFunds, cx);
    *balance -= m.amount();
    cx.send<Credit>(lockstep::ref<Branch>(m.to() % branches), m.from(), m.to(), m.amount());
  }

  void on(const Credit& m, lockstep::Context& cx) {
    std::int64_t& balance = accounts[m.to()];
    if (balance > largest_balance - m.amount()) {
      cx.send<Refund>(lockstep::ref<Branch>(m.from() % branches), m.from(), m.amount());
      return reject(m.to(), Reason::TooRich, cx);
    }
    balance += m.amount();
    cx.reply<Transferred>(m.from(), m.to(), m.amount());
  }

  void on(const Refund& m, lockstep::Context&) { accounts[m.account()] += m.amount(); }

  void on(const Accrue& m, lockstep::Context& cx) {
    const std::int64_t rate_ppm = m.rate_ppm();
    for (auto&& [account, balance] : accounts) {
      const std::int64_t interest = balance / 1'000'000 * rate_ppm + balance % 1'000'000 * rate_ppm / 1'000'000;
      balance = std::min(balance + interest, largest_balance);
    }
    cx.after<Accrue>(24h, m.rate_ppm());
  }

  void on(const GetBalance& m, lockstep::Query& q) const {
    q.reply<Balance>(m.account(), accounts.get(m.account(), 0));
  }

  void on(const GetTotal&, lockstep::Query& q) const {
    std::int64_t sum = 0;
    for (auto&& [account, balance] : accounts) sum += balance;
    q.reply<Total>(accounts.size(), sum, rejected);
  }

 private:
  static bool holds(std::uint64_t account, const lockstep::Context& cx) { return account % branches == cx.self().key; }

  void reject(std::uint64_t account, Reason why, lockstep::Context& cx) {
    ++rejected;
    cx.reply<Rejected>(account, why);
  }
};

}  // namespace bank
