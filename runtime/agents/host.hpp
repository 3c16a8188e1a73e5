// SPDX-License-Identifier: Apache-2.0
#pragma once

/// What the host lacks (address space, memory) is no part of history: never a trap, but the end of the process, with a
/// line that says what was asked for. Any thread.

#include <cstdlib>
#include <utility>

#include "base/error.hpp"
#include "base/log.hpp"

namespace lockstep {

/// The value, or the end of the process.
template <class T>
[[nodiscard]] T or_stop(Result<T> result) {
  if (!result) {
    log(LogLevel::error, "executor", "{}", result.error().message);
    std::abort();
  }
  return *std::move(result);
}

}  // namespace lockstep
