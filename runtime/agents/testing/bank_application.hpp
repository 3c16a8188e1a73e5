// SPDX-License-Identifier: Apache-2.0
#pragma once

/// A small application for the tests of the perimeter: what may enter, not what happens to it.

#include "lockstep/actor.hpp"
#include "lockstep/application.hpp"
#include "test_messages_generated.h"

namespace lockstep::testing {

struct Teller {
  static constexpr auto name = "teller";
  using Receives = lockstep::Receives<Deposit, GetBalance, Order, Node, Bump>;

  std::int64_t total = 0;

  void on(const Deposit& m, Context&) { total += m.amount(); }
  void on(const GetBalance& m, Query& query) const { query.reply<Balance>(m.account(), total); }
  void on(const Order&, Context&) {}
  void on(const Node&, Context&) {}
  void on(const Bump& m, Context&) { total += m.amount(); }
};

inline const Application& bank_application() {
  return application<Teller>();
}

}  // namespace lockstep::testing
