// SPDX-License-Identifier: Apache-2.0
#include "base/assert.hpp"

#include <execinfo.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>

namespace lockstep {

void assertion_failed(const char* condition, const char* cause, const char* file, int line) {
  std::fprintf(stderr, "lockstep: assertion failed: %s (%s) at %s:%d\n", cause, condition, file, line);
  void* frames[48];
  backtrace_symbols_fd(frames, backtrace(frames, 48), STDERR_FILENO);
  std::abort();
}

}  // namespace lockstep
