// SPDX-License-Identifier: Apache-2.0
#include "bench/support/results.hpp"

#include <fmt/format.h>

#include <cctype>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <system_error>
#include <utility>

namespace lockstep::bench {

namespace {

/// "CAF, 2 threads" -> "caf-2-threads".
std::string file_part(const std::string& text) {
  std::string part;
  for (const char each : text) {
    const auto byte = static_cast<unsigned char>(each);
    if (std::isalnum(byte) != 0)
      part += static_cast<char>(std::tolower(byte));
    else if (!part.empty() && part.back() != '-')
      part += '-';
  }
  while (part.ends_with('-')) part.pop_back();
  return part;
}

[[noreturn]] void give_up(const std::string& name, const std::string& why) {
  fmt::print(stderr, "bench_{}: {}\n", name, why);
  std::exit(1);
}

}  // namespace

Results::Results(std::string directory, std::string name) : directory_(std::move(directory)), name_(std::move(name)) {
  if (directory_.empty()) return;
  std::error_code error;
  std::filesystem::create_directories(directory_, error);
  if (error) give_up(name_, fmt::format("cannot make the output directory {}: {}", directory_, error.message()));
}

void Results::figures(const Table& table) const {
  write("", "csv", table.csv());
}

void Results::distribution(const std::string& series, const Histogram& values_ns) const {
  write(series, "hgrm", values_ns.hgrm(1000));
}

void Results::plot(const std::string& subject, const Plot& plot) const {
  if (!has_points(plot)) {
    if (!directory_.empty())
      fmt::print(stderr, "bench_{}: no plot \"{}\": it would have no points\n", name_, plot.title);
    return;
  }
  write(subject, "gp", to_gnuplot(plot));
}

void Results::write(const std::string& subject, const char* ending, const std::string& text) const {
  if (directory_.empty()) return;
  const std::string part = file_part(subject);
  const std::string path = fmt::format("{}/{}{}{}.{}", directory_, name_, part.empty() ? "" : ".", part, ending);
  if (const auto written = write_file(path, text); !written) give_up(name_, written.error().message);
}

}  // namespace lockstep::bench
