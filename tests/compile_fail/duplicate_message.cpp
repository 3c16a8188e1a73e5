// SPDX-License-Identifier: Apache-2.0
#include <lockstep/application.hpp>

#include "test_messages_generated.h"

using namespace lockstep::testing;

struct Bank {
  static constexpr auto name = "bank";
#ifdef FAIL
  using Receives = lockstep::Receives<Deposit, Withdraw, Deposit>;
#else
  using Receives = lockstep::Receives<Deposit, Withdraw>;
#endif
  void on(const Deposit&, lockstep::Context&) {}
  void on(const Withdraw&, lockstep::Context&) {}
};
static_assert(lockstep::actor_type<Bank>.id != 0);
