// SPDX-License-Identifier: Apache-2.0
#include <lockstep/persistent.hpp>

struct Bank {
  std::int32_t a0, a1, a2, a3, a4, a5, a6, a7, b0, b1, b2, b3, b4, b5, b6, b7;
  std::int32_t c0, c1, c2, c3, c4, c5, c6, c7, d0, d1, d2, d3, d4, d5, d6, d7;
#ifdef FAIL
  std::int32_t e0;
#endif
};
static_assert(lockstep::check_state<Bank>());
