// SPDX-License-Identifier: Apache-2.0
#pragma once

/// What the program does beside lockstep's own subcommands: each parses its arguments, runs, and returns the exit code,
/// with the meanings that lockstep's have (docs/command-line.md).

#include <lockstep/client.hpp>

#include <CLI/CLI.hpp>
#include <cstdint>
#include <string>

#include "base/error.hpp"

namespace matching {

/// Sends a LOBSTER message file to a node's book.
int import_command(int argc, char** argv);
/// Writes a made-up LOBSTER message file.
int generate_command(int argc, char** argv);
/// Prints the best prices of a node's book.
int depth_command(int argc, char** argv);

/// A whole number from `lowest`, in digits: CLI11 alone takes -1 for 18446744073709551615.
[[nodiscard]] CLI::Validator whole(std::uint64_t lowest);

/// Which book of which node.
struct BookOptions {
  std::string connect;  ///< HOST:PORT
  std::uint64_t symbol = 1;

  void add_to(CLI::App& app);
};

/// Parses, then runs; what is wrong with the arguments goes to stderr.
template <class Run>
int parse_and_run(CLI::App& app, int argc, char** argv, Run run) {
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    constexpr int usage = 2;
    return app.exit(error) == 0 ? 0 : usage;
  }
  return run();
}

/// Prints an error, and gives its exit code.
int report(const lockstep::Error& error);

[[nodiscard]] lockstep::Result<lockstep::Client> connect(const std::string& endpoint);

}  // namespace matching
