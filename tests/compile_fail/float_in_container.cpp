// SPDX-License-Identifier: Apache-2.0
#include <lockstep/map.hpp>
#include <lockstep/vector.hpp>

struct Bank {
  lockstep::Map<std::uint64_t, lockstep::Vector<std::int64_t>> history;
#ifdef FAIL
  lockstep::Map<std::uint64_t, lockstep::Vector<double>> rates;
#endif
};
static_assert(lockstep::check_state<Bank>());
