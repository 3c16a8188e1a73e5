// SPDX-License-Identifier: Apache-2.0
#pragma once

/// LOCKSTEP_ASSERT(condition, cause): a bug trap that is always on. It is for states that only a programming error can
/// reach; what comes from outside (sockets, files, flags) is refused with an Error instead. Prints one line with the
/// cause and the place, a backtrace, and aborts. Any thread.

namespace lockstep {

[[noreturn, gnu::cold]] void assertion_failed(const char* condition, const char* cause, const char* file, int line);

}  // namespace lockstep

#define LOCKSTEP_ASSERT(condition, cause)              \
  (static_cast<bool>(condition) ? static_cast<void>(0) \
                                : ::lockstep::assertion_failed(#condition, cause, __FILE__, __LINE__))
