// SPDX-License-Identifier: Apache-2.0
#pragma once

/// Error: why an operation on something outside the process failed, with context enough for an operator. Used in
/// std::expected at boundaries; never on a hot path. `message` says what was tried, on which object (file, offset,
/// seq, address), and what to do; `code` is what a program may decide by.

#include <expected>
#include <string>
#include <utility>

namespace lockstep {

enum class ErrorCode {
  usage,         ///< a flag or a configuration value is not acceptable
  io,            ///< the kernel refused an operation; the message holds its errno
  corrupt,       ///< bytes at rest are damaged where they were once durable
  ambiguous,     ///< it cannot be told whether what is missing was ever acknowledged
  incompatible,  ///< written by a newer version, for another cluster, or for another application
  busy,          ///< somebody else holds it (a lock, a port)
  full,          ///< no space, or a limit is reached
  unsupported,   ///< this host cannot do it
  diverged,      ///< a re-execution gave other bits than those recorded
  incomplete,    ///< a comparison could not run; never to be read as "equal"
};

struct Error {
  ErrorCode code = ErrorCode::io;
  std::string message;
};

template <class T>
using Result = std::expected<T, Error>;

[[nodiscard]] inline std::unexpected<Error> fail(ErrorCode code, std::string message) {
  return std::unexpected(Error{code, std::move(message)});
}

}  // namespace lockstep
