// SPDX-License-Identifier: Apache-2.0
#pragma once

/// How a bench ends when something that it needs fails: with a line on stderr and status 1, so that no figure is shown
/// of what did not work.

#include <fmt/format.h>

#include <cstdio>
#include <cstdlib>
#include <string>
#include <type_traits>
#include <utility>

#include "base/error.hpp"

namespace lockstep::bench {

[[noreturn]] inline void give_up(const std::string& what) {
  fmt::print(stderr, "bench: {}\n", what);
  std::exit(1);
}

/// The value, where there is one.
template <class T>
T need(Result<T> result) {
  if (!result) give_up(result.error().message);
  if constexpr (!std::is_void_v<T>) return std::move(*result);
}

}  // namespace lockstep::bench
