// SPDX-License-Identifier: Apache-2.0
#include <lockstep/run.hpp>

#include "replay/command_line.hpp"

namespace lockstep {

int run_program(const Application& application, const Program& program, int argc, char** argv) {
  return run_command_line(&application, program, argc, argv);
}

}  // namespace lockstep
