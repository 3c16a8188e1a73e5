// SPDX-License-Identifier: Apache-2.0
#include "bench/support/options.hpp"

#include <CLI/CLI.hpp>
#include <cstdlib>

namespace lockstep::bench {

Options parse_options(int argc, char** argv, const std::string& description, double default_seconds,
                      const std::vector<Switch>& switches) {
  Options options;
  options.seconds = default_seconds;
  CLI::App app(description);
  app.add_option("--seconds", options.seconds, "Stop after this long")
      ->capture_default_str()
      ->check(CLI::PositiveNumber);
  app.add_option("--mib", options.mib, "Size of what is measured, where it has one")->check(CLI::PositiveNumber);
  app.add_option("--out", options.out, "Write figures, distributions and plots into this directory")->type_name("DIR");
  for (const Switch& each : switches) app.add_flag(each.name, *each.on, each.help);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    std::exit(app.exit(error) == 0 ? 0 : 2);
  }
  return options;
}

}  // namespace lockstep::bench
