// SPDX-License-Identifier: Apache-2.0
#include "replay/command_line.hpp"

int main(int argc, char** argv) {
  return lockstep::run_command_line(nullptr, {}, argc, argv);
}
