// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <cerrno>
#include <cstdio>
#include <string>

#include "base/system_error.hpp"
#include "commands.hpp"
#include "flow_run.hpp"
#include "lobster.hpp"

namespace matching {
namespace {

int write_flow(const std::string& path, std::uint64_t seed, std::uint64_t lines) {
  std::FILE* const file = path.empty() ? stdout : std::fopen(path.c_str(), "we");
  if (file == nullptr) return report(lockstep::system_error("open", path, errno));
  bool written = true;
  FlowRun run(seed);
  for (std::uint64_t left = lines; left != 0 && written;) {
    for (const ExecutionReport& each : run.next()) {
      const auto message = of_report(each);
      if (!message) continue;
      const std::string line = format_lobster(*message) + "\n";
      written = std::fwrite(line.data(), 1, line.size(), file) == line.size();
      if (--left == 0 || !written) break;
    }
  }
  const int error = errno;
  const bool closed = file == stdout ? std::fflush(file) == 0 : std::fclose(file) == 0;
  if (written && closed) return 0;
  return report(lockstep::system_error("write", path.empty() ? "standard output" : path, written ? errno : error));
}

}  // namespace

int generate_command(int argc, char** argv) {
  CLI::App app{"Write a LOBSTER message file of a made-up order flow, run through a book", "matching_engine generate"};
  std::string path;
  std::uint64_t seed = 1;
  std::uint64_t lines = 100'000;
  app.add_option("--out", path, "the file; standard output unless given");
  app.add_option("--seed", seed, "of the flow: the same seed, the same file")->check(whole(0))->capture_default_str();
  app.add_option("--lines", lines, "how many")->check(whole(1))->capture_default_str();
  return parse_and_run(app, argc, argv, [&] { return write_flow(path, seed, lines); });
}

}  // namespace matching
