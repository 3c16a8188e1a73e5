// SPDX-License-Identifier: Apache-2.0
#include <lockstep/persistent.hpp>

union Word {
  std::uint64_t word;
  std::uint8_t bytes[8];
};

struct Bank {
  std::uint64_t total = 0;
#ifdef FAIL
  Word word = {};
#endif
};
static_assert(lockstep::check_state<Bank>());
