// SPDX-License-Identifier: Apache-2.0
// The program: ./shelf --help
#include "shelf.hpp"

#include <lockstep/run.hpp>

int main(int argc, char** argv) {
  return lockstep::run<shelf::Shelf>(argc, argv);
}
