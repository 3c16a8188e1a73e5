// SPDX-License-Identifier: Apache-2.0
#include <lockstep/application.hpp>

#include "test_messages_generated.h"

using namespace lockstep::testing;

struct Bank {
  static constexpr auto name = "bank";
  using Receives = lockstep::Receives<Deposit, Withdraw>;
  void on(const Deposit&, lockstep::Context&) {}
#ifndef FAIL
  void on(const Withdraw&, lockstep::Context&) {}
#endif
};
static_assert(lockstep::actor_type<Bank>.id != 0);
