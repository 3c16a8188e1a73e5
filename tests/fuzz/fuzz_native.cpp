// SPDX-License-Identifier: Apache-2.0
// Native frames under libFuzzer (https://llvm.org/docs/LibFuzzer.html).
#include "tests/fuzz/hostile.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  lockstep::testing::drive_native({bytes, size});
  return 0;
}
