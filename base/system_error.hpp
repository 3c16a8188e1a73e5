// SPDX-License-Identifier: Apache-2.0
#pragma once

/// An errno as an operator should read it: the operation, the object it hit, the errno's name and text, and what to do.
/// Cold path only. Any thread.

#include <string>
#include <string_view>

#include "base/error.hpp"

namespace lockstep {

/// "ENOSPC (No space left on device)".
[[nodiscard]] std::string errno_text(int error);

/// "write /data/000.seg: ENOSPC (No space left on device); free space on that file system".
[[nodiscard]] Error system_error(std::string_view operation, std::string_view object, int error);

[[nodiscard]] inline std::unexpected<Error> system_failure(std::string_view operation, std::string_view object,
                                                           int error) {
  return std::unexpected(system_error(operation, object, error));
}

/// The errno that stands for an Error where only a number fits (Disk's background completions).
[[nodiscard]] int errno_of(ErrorCode code);

}  // namespace lockstep
