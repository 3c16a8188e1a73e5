// SPDX-License-Identifier: Apache-2.0
#include <lockstep/persistent.hpp>

class Money {
 public:
  Money() = default;

 private:
  std::int64_t cents_ = 0;
};

struct Bank {
  std::uint64_t total = 0;
#ifdef FAIL
  Money fees;
#endif
};
static_assert(lockstep::check_state<Bank>());
