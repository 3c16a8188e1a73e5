// SPDX-License-Identifier: Apache-2.0
// Message payloads under libFuzzer (https://llvm.org/docs/LibFuzzer.html).
#include "tests/fuzz/hostile.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  lockstep::testing::drive_verify({bytes, size});
  return 0;
}

/// One node lives through all inputs, so memory that grows over one of them is no leak; the suite looks for those.
extern "C" const char* __asan_default_options() {
  return "detect_leaks=0";
}
