// SPDX-License-Identifier: Apache-2.0
#include <lockstep/persistent.hpp>

struct Totals {
  std::uint64_t total = 0;
};

#ifdef FAIL
struct Bank : Totals {
#else
struct Bank {
  Totals totals;
#endif
  std::uint64_t rejected = 0;
};
static_assert(lockstep::check_state<Bank>());
