// SPDX-License-Identifier: Apache-2.0
#include <lockstep/application.hpp>

#include "test_messages_generated.h"

using namespace lockstep::testing;

struct Bank {
#ifndef FAIL
  static constexpr auto name = "bank";
#endif
  using Receives = lockstep::Receives<Deposit>;
  void on(const Deposit&, lockstep::Context&) {}
};
constexpr lockstep::ActorType type = lockstep::actor_type<Bank>;
