// SPDX-License-Identifier: Apache-2.0
#pragma once

/// The command line of a lockstep program: `serve`, `replay`, `bench` for those that have actors, and `journal`,
/// `hash`, `doctor` for all. One place knows CLI11.

#include "lockstep/application.hpp"
#include "lockstep/run.hpp"

namespace lockstep {

/// Parses and runs. `application` null: a program without actors (the stand-alone tool). Returns the exit code.
[[nodiscard]] int run_command_line(const Application* application, const Program& program, int argc, char** argv);

}  // namespace lockstep
