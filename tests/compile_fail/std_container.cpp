// SPDX-License-Identifier: Apache-2.0
#include <lockstep/persistent.hpp>
#include <map>

struct Bank {
  std::uint64_t total = 0;
#ifdef FAIL
  std::map<std::uint64_t, std::int64_t> accounts;
#endif
};
static_assert(lockstep::check_state<Bank>());
