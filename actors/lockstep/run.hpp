// SPDX-License-Identifier: Apache-2.0
#pragma once

/// run: makes a program of actor types. `int main(int argc, char** argv) { return lockstep::run<Bank>(argc, argv); }`
/// has the subcommands serve, replay, journal, hash and doctor; `--help` tells of each.

#include "lockstep/application.hpp"

namespace lockstep {

/// Parses the command line and runs what it names. Returns the exit code.
[[nodiscard]] int run_program(const Application& application, int argc, char** argv);

template <class... Actors>
[[nodiscard]] int run(int argc, char** argv) {
  return run_program(application<Actors...>(), argc, argv);
}

}  // namespace lockstep
