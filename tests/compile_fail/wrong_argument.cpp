// SPDX-License-Identifier: Apache-2.0
#include <lockstep/application.hpp>

#include "test_messages_generated.h"

using namespace lockstep::testing;

struct Bank {
  static constexpr auto name = "bank";
  using Receives = lockstep::Receives<Deposit>;
  void on(const Deposit& m, lockstep::Context& cx) {
#ifdef FAIL
    cx.reply<Balance>(m.account(), "all of it");
#else
    cx.reply<Balance>(m.account(), m.amount());
#endif
  }
};
static_assert(lockstep::actor_type<Bank>.id != 0);
