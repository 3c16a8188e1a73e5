// SPDX-License-Identifier: Apache-2.0
#pragma once

/// What the commands print on stdout: their JSON, and whether all of it has been taken. A write that fails while
/// printing throws std::system_error, as fmt does; what is still buffered is only known to be lost by flush_stdout().
/// One thread. A pipe whose reader has gone ends the process by SIGPIPE, quietly; that is not seen here.

#include <nlohmann/json_fwd.hpp>

#include "base/error.hpp"

namespace lockstep {

/// One line; bytes that are not UTF-8 become U+FFFD.
void print_json_line(const nlohmann::json& value);

/// Says that stdout takes nothing more; `error` is an errno, 0 when it is not known any more.
[[nodiscard]] Error stdout_error(int error);

/// An Error when stdout has not taken all that was printed so far.
[[nodiscard]] Result<void> flush_stdout();

/// Gives a standard descriptor that is closed to /dev/null. The next file to be opened would have it otherwise, which
/// may be a journal, and what is printed would go into that. stdout still takes nothing then.
void hold_standard_descriptors();

}  // namespace lockstep
