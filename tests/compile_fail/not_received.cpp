// SPDX-License-Identifier: Apache-2.0
#include <lockstep/application.hpp>

#include "test_messages_generated.h"

using namespace lockstep::testing;

struct Bank {
  static constexpr auto name = "bank";
  using Receives = lockstep::Receives<Deposit>;
  using Sends = lockstep::Sends<Deposit, Withdraw>;
  void on(const Deposit& m, lockstep::Context& cx) {
#ifdef FAIL
    cx.send<Withdraw>(lockstep::ref<Bank>(m.account()), m.account(), m.amount());
#else
    cx.send<Deposit>(lockstep::ref<Bank>(m.account()), m.account(), m.amount());
#endif
  }
};
static_assert(lockstep::actor_type<Bank>.id != 0);
