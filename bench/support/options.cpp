// SPDX-License-Identifier: Apache-2.0
#include "bench/support/options.hpp"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <charconv>
#include <cmath>
#include <cstdlib>

namespace lockstep::bench {

namespace {

/// CLI11's own takes nan, and names the largest double in 309 digits.
CLI::Validator positive() {
  return {[](const std::string& text) {
            double number = 0;
            const char* const end = text.data() + text.size();
            const auto [rest, error] = std::from_chars(text.data(), end, number);
            if (error == std::errc{} && rest == end && number > 0 && std::isfinite(number)) return std::string();
            return fmt::format("must be a number above 0, not '{}'", text);
          },
          "POSITIVE", "positive"};
}

}  // namespace

Options parse_options(int argc, char** argv, const std::string& description, double default_seconds,
                      const std::vector<Switch>& switches) {
  Options options;
  options.seconds = default_seconds;
  CLI::App app(description);
  app.add_option("--seconds", options.seconds, "Stop after this long")->capture_default_str()->check(positive());
  app.add_option("--mib", options.mib, "Size of what is measured, where it has one")->check(positive());
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
