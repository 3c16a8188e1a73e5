// SPDX-License-Identifier: Apache-2.0
#include <lockstep/run.hpp>

#include "replay/command_line.hpp"

namespace lockstep {

int run_program(const Application& application, int argc, char** argv) {
  return run_command_line(&application, argc, argv);
}

}  // namespace lockstep
