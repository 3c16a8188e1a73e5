// SPDX-License-Identifier: Apache-2.0
#include "bank.hpp"

#include <lockstep/run.hpp>

int main(int argc, char** argv) { return lockstep::run<bank::Branch>(argc, argv); }
