// SPDX-License-Identifier: Apache-2.0
#include <lockstep/vector.hpp>

// A container that is no actor's state lies in the arena all the same.
void handler() {
  lockstep::Vector<std::uint64_t> ids;
#ifdef FAIL
  lockstep::Vector<const std::uint64_t*> places;
#endif
}
