// SPDX-License-Identifier: Apache-2.0
#include "bench/support/options.hpp"

#include <CLI/CLI.hpp>
#include <cstdlib>

namespace lockstep::bench {

Options parse_options(int argc, char** argv, const std::string& description, double default_seconds) {
  Options options;
  options.seconds = default_seconds;
  CLI::App app(description);
  app.add_option("--seconds", options.seconds, "Stop after this long")
      ->capture_default_str()
      ->check(CLI::PositiveNumber);
  app.add_option("--mib", options.mib, "Size of what is measured, where it has one")->check(CLI::PositiveNumber);
  app.add_option("--csv", options.csv, "Write the figures to this file too")->type_name("FILE");
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    std::exit(app.exit(error) == 0 ? 0 : 2);
  }
  return options;
}

}  // namespace lockstep::bench
