// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <optional>

#include "base/clock.hpp"
#include "base/log.hpp"
#include "base/system_error.hpp"
#include "replay/commands.hpp"
#include "replay/progress.hpp"
#include "replay/stop_signals.hpp"
#include "runtime/node.hpp"

namespace lockstep {
namespace {

/// In one step, so that whoever waits for the file never reads half of it.
Result<void> write_ready_file(const std::string& path, const Node& node) {
  const nlohmann::json page{{"schema", "lockstep.ready/1"},
                            {"pid", getpid()},
                            {"listen", node.native_endpoint().text()},
                            {"resp", node.resp_endpoint().port == 0 ? "" : node.resp_endpoint().text()},
                            {"admin", node.admin_endpoint().text()}};
  const std::string text = page.dump() + "\n";
  const std::string temporary = path + ".tmp";
  std::FILE* file = std::fopen(temporary.c_str(), "we");
  bool written = file != nullptr && std::fwrite(text.data(), 1, text.size(), file) == text.size();
  if (file != nullptr) written = std::fclose(file) == 0 && written;
  if (!written || std::rename(temporary.c_str(), path.c_str()) != 0)
    return fail(ErrorCode::io, fmt::format("cannot write the ready file {}: {}", path, errno_text(errno)));
  return {};
}

}  // namespace

ExitCode serve_command(const Application& application, const ServeOptions& options) {
  const StopSignals signals;
  std::signal(SIGPIPE, SIG_IGN);
  SystemClock clock;
  const auto make_reactor = [&] {
    return io::make_reactor(options.config.io, {.max_connections = options.config.max_connections});
  };
  std::optional<Progress> progress;
  const auto show = [&](std::uint64_t seq, std::uint64_t last_seq) {
    if (!progress) progress.emplace("recovering", "messages", last_seq);
    progress->update(seq);
  };
  auto node = Node::open(application, options.program.resp, options.config, clock, make_reactor, show);
  progress.reset();
  if (!node) return report(node.error());
  log(LogLevel::info, "node", "{}", (*node)->summary());
  (*node)->start();
  log(LogLevel::info, "node", "serving native on {}{}, admin on {}", (*node)->native_endpoint().text(),
      (*node)->resp_endpoint().port == 0 ? "" : ", resp on " + (*node)->resp_endpoint().text(),
      (*node)->admin_endpoint().text());
  if (!options.ready_file.empty())
    if (const auto written = write_ready_file(options.ready_file, **node); !written) return report(written.error());

  constexpr long look_every_ms = 200;
  while (!signals.wait(look_every_ms))
    if ((*node)->failed()) break;
  if ((*node)->failed()) {
    log(LogLevel::error, "node", "stopped, nothing was acknowledged since: {}", (*node)->failure().message);
  } else {
    log(LogLevel::info, "node", "stopping");
  }
  if (const auto stopped = (*node)->stop(); !stopped) return report(stopped.error());
  log(LogLevel::info, "node", "stopped");
  return ExitCode::equal;
}

}  // namespace lockstep
