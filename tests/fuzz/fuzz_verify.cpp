// SPDX-License-Identifier: Apache-2.0
// Message payloads under libFuzzer (https://llvm.org/docs/LibFuzzer.html).
#include "tests/fuzz/hostile.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  lockstep::testing::drive_verify({bytes, size});
  return 0;
}
