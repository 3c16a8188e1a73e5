// SPDX-License-Identifier: Apache-2.0
#pragma once

/// The command line that all bench programs share.

#include <string>

namespace lockstep::bench {

struct Options {
  double seconds = 0;  ///< bound on the whole run
  double mib = 0;      ///< of what is measured, where that has a size; 0: the bench's own
  std::string out;     ///< directory for the files (results.hpp); empty for none
};

/// Prints the help or what is wrong, and exits, when the command line asks for it.
[[nodiscard]] Options parse_options(int argc, char** argv, const std::string& description, double default_seconds);

}  // namespace lockstep::bench
