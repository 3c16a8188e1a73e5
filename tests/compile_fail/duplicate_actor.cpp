// SPDX-License-Identifier: Apache-2.0
#include <lockstep/application.hpp>

#include "test_messages_generated.h"

using namespace lockstep::testing;

struct Bank {
  static constexpr auto name = "bank";
  using Receives = lockstep::Receives<Deposit>;
  void on(const Deposit&, lockstep::Context&) {}
};
struct Vault {
#ifdef FAIL
  static constexpr auto name = "bank";
#else
  static constexpr auto name = "vault";
#endif
  using Receives = lockstep::Receives<Deposit>;
  void on(const Deposit&, lockstep::Context&) {}
};
const lockstep::Application& app = lockstep::application<Bank, Vault>();
