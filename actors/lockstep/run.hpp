// SPDX-License-Identifier: Apache-2.0
#pragma once

/// run: makes a program of actor types. `int main(int argc, char** argv) { return lockstep::run<Bank>(argc, argv); }`
/// has the subcommands serve, replay, journal, hash, doctor and, with a load, bench; `--help` tells of each. It may
/// have more of its own.

#include <cstdint>
#include <span>

#include "lockstep/application.hpp"
#include "lockstep/load_command.hpp"
#include "lockstep/resp.hpp"

namespace lockstep {

/// A subcommand of the program's own, in `--help` beside lockstep's.
struct ProgramCommand {
  const char* name = nullptr;
  const char* meaning = nullptr;                ///< one line
  int (*run)(int argc, char** argv) = nullptr;  ///< is handed what follows the program's name; its exit code
};

/// What a program has beside its actors. What it points to must outlive run().
struct Program {
  const resp::Application* resp = nullptr;  ///< how its actors speak to Redis clients; null: they do not
  void (*load)(std::uint64_t index, LoadCommand& command) = nullptr;  ///< what `bench` sends; null: no such subcommand
  std::span<const ProgramCommand> commands = {};
};

/// Parses the command line and runs what it names. Returns the exit code.
[[nodiscard]] int run_program(const Application& application, const Program& program, int argc, char** argv);

template <class... Actors>
[[nodiscard]] int run(int argc, char** argv, const Program& program = {}) {
  return run_program(application<Actors...>(), program, argc, argv);
}

}  // namespace lockstep
