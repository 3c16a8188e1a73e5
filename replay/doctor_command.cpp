// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string_view>
#include <utility>
#include <vector>

#include "replay/commands.hpp"
#include "replay/output.hpp"
#include "runtime/io/host_report.hpp"
#include "runtime/io/io_caps.hpp"

namespace lockstep {

ExitCode doctor_command(const DoctorOptions& options) {
  std::error_code ignored;
  if (std::filesystem::exists(options.data, ignored) && !std::filesystem::is_directory(options.data, ignored))
    return report(
        {ErrorCode::usage, fmt::format("{} is a file; name a directory, which need not be there yet", options.data)});
  std::vector<io::Capability> rows = io::probe_io_uring();
  for (io::Capability& row : io::probe_host(options.data)) rows.push_back(std::move(row));
  if (options.json) {
    nlohmann::json out{{"schema", "lockstep.doctor/1"}, {"features", nlohmann::json::array()}};
    for (const io::Capability& row : rows)
      out["features"].push_back({{"feature", row.feature},
                                 {"good", row.good},
                                 {"here", row.here},
                                 {"instead", row.instead},
                                 {"remedy", row.remedy}});
    print_json_line(out);
    return ExitCode::equal;
  }
  std::size_t feature_width = 7;
  std::size_t here_width = 4;
  for (const io::Capability& row : rows) {
    feature_width = std::max(feature_width, row.feature.size());
    here_width = std::max(here_width, row.here.size());
  }
  const auto print = [&](std::string_view mark, std::string_view feature, std::string_view here,
                         std::string_view instead) {
    fmt::print("{:<4}{:<{}}  {:<{}}  {}\n", mark, feature, feature_width, here, here_width, instead);
  };
  print("", "feature", "here", "used instead");
  std::size_t wanting = 0;
  for (const io::Capability& row : rows) {
    print(row.good ? "ok" : "--", row.feature, row.here, row.instead);
    if (!row.remedy.empty()) fmt::print("      to change it: {}\n", row.remedy);
    wanting += row.good ? 0 : 1;
  }
  fmt::print("{} of {} as lockstep would have them\n", rows.size() - wanting, rows.size());
  return ExitCode::equal;
}

}  // namespace lockstep
