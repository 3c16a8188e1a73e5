// SPDX-License-Identifier: Apache-2.0
#pragma once

/// The command line that all bench programs share.

#include <string>
#include <vector>

namespace lockstep::bench {

struct Options {
  double seconds = 0;  ///< bound on the whole run
  double mib = 0;      ///< of what is measured, where that has a size; 0: the bench's own
  std::string out;     ///< directory for the files (results.hpp); empty for none
};

/// A switch that one bench has for itself.
struct Switch {
  std::string name;  ///< with its dashes
  std::string help;
  bool* on = nullptr;
};

/// Prints the help or what is wrong, and exits, when the command line asks for it.
[[nodiscard]] Options parse_options(int argc, char** argv, const std::string& description, double default_seconds,
                                    const std::vector<Switch>& switches = {});

}  // namespace lockstep::bench
