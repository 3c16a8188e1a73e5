// SPDX-License-Identifier: Apache-2.0
#include <lockstep/persistent.hpp>

struct Bank {
  std::uint64_t total = 0;
#ifdef FAIL
  std::uint64_t& best;
#endif
};
static_assert(lockstep::check_state<Bank>());
