// SPDX-License-Identifier: Apache-2.0
#include <lockstep/persistent.hpp>

struct Account {
  std::int64_t balance = 0;
#ifdef FAIL
  bool frozen = false;
#endif
};

struct Bank {
  std::uint64_t total = 0;
  std::array<Account, 4> accounts;
};
static_assert(lockstep::check_state<Bank>());
