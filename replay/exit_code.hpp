// SPDX-License-Identifier: Apache-2.0
#pragma once

/// How the commands end; scripts decide by these, so they never change meaning.

#include "base/error.hpp"

namespace lockstep {

enum class ExitCode : int {
  equal = 0,         ///< done; compared and equal
  different = 1,     ///< a divergence or a difference was found
  usage = 2,         ///< a flag, a range or a configuration is not acceptable
  damaged = 3,       ///< a journal is damaged
  incompatible = 4,  ///< other build, other cluster, newer format
  incomplete = 5,    ///< something could not be compared; never to be read as equal
  failed = 7,        ///< the host refused something: a port, a file, a lock
};

[[nodiscard]] constexpr ExitCode exit_code_of(ErrorCode code) {
  switch (code) {
    case ErrorCode::usage:
      return ExitCode::usage;
    case ErrorCode::corrupt:
    case ErrorCode::ambiguous:
      return ExitCode::damaged;
    case ErrorCode::incompatible:
      return ExitCode::incompatible;
    case ErrorCode::diverged:
      return ExitCode::different;
    case ErrorCode::incomplete:
      return ExitCode::incomplete;
    case ErrorCode::io:
    case ErrorCode::busy:
    case ErrorCode::full:
    case ErrorCode::unsupported:
      return ExitCode::failed;
  }
  return ExitCode::failed;
}

}  // namespace lockstep
