// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <system_error>
#include <utility>

#include "base/clock.hpp"
#include "base/log.hpp"
#include "base/system_error.hpp"
#include "replay/commands.hpp"
#include "replay/progress.hpp"
#include "replay/stop_signals.hpp"
#include "runtime/node.hpp"

namespace lockstep {
namespace {

/// What tells others that the node serves. It is opened before anything else is made, so that a path that cannot be
/// written is refused while there is nothing to be taken back, and it appears in one step, so that whoever waits for it
/// never reads half of it.
class ReadyFile {
 public:
  [[nodiscard]] static Result<ReadyFile> open(const std::string& path) {
    ReadyFile ready(path);
    std::error_code none;
    if (std::filesystem::is_directory(path, none)) return ready.refuse(EISDIR);
    ready.file_ = std::fopen(ready.temporary_.c_str(), "we");
    if (ready.file_ == nullptr) return ready.refuse(errno);
    return ready;
  }
  ReadyFile(ReadyFile&& other) noexcept
      : path_(std::move(other.path_)),
        temporary_(std::move(other.temporary_)),
        file_(std::exchange(other.file_, nullptr)) {}
  ReadyFile& operator=(ReadyFile&&) = delete;
  ~ReadyFile() {
    if (file_ == nullptr) return;
    std::fclose(file_);
    std::remove(temporary_.c_str());
  }

  [[nodiscard]] Result<void> write(const std::string& text) {
    bool written = std::fwrite(text.data(), 1, text.size(), file_) == text.size();
    written = std::fclose(std::exchange(file_, nullptr)) == 0 && written;
    if (written && std::rename(temporary_.c_str(), path_.c_str()) == 0) return {};
    const int error = errno;
    std::remove(temporary_.c_str());
    return refuse(error);
  }

 private:
  explicit ReadyFile(const std::string& path) : path_(path), temporary_(path + ".tmp") {}
  [[nodiscard]] std::unexpected<Error> refuse(int error) const {
    return fail(ErrorCode::io, fmt::format("cannot write the ready file {}: {}", path_, errno_text(error)));
  }

  std::string path_;
  std::string temporary_;
  std::FILE* file_ = nullptr;
};

std::string ready_page(const Node& node) {
  const nlohmann::json page{{"schema", "lockstep.ready/1"},
                            {"pid", getpid()},
                            {"listen", node.native_endpoint().text()},
                            {"resp", node.resp_endpoint().port == 0 ? "" : node.resp_endpoint().text()},
                            {"admin", node.admin_endpoint().port == 0 ? "" : node.admin_endpoint().text()}};
  return page.dump() + "\n";
}

std::string addresses(const Node& node) {
  std::string text = fmt::format("native on {}", node.native_endpoint().text());
  if (node.resp_endpoint().port != 0) text += fmt::format(", resp on {}", node.resp_endpoint().text());
  const io::Endpoint admin = node.admin_endpoint();
  text += admin.port != 0 ? fmt::format(", admin on {}", admin.text()) : ", without an admin address";
  return text;
}

}  // namespace

ExitCode serve_command(const Application& application, const ServeOptions& options) {
  const StopSignals signals;
  std::signal(SIGPIPE, SIG_IGN);
  std::optional<ReadyFile> ready_file;
  if (!options.ready_file.empty()) {
    auto opened = ReadyFile::open(options.ready_file);
    if (!opened) return report(opened.error());
    ready_file.emplace(std::move(*opened));
  }
  SystemClock clock;
  const auto make_reactor = [&] {
    return io::make_reactor(options.config.io, {.max_connections = options.config.max_connections});
  };
  std::optional<Progress> progress;
  bool stopped_at_start = false;
  const auto show = [&](std::uint64_t seq, std::uint64_t last_seq) {
    if (!progress) progress.emplace("recovering", "messages", last_seq);
    progress->update(seq);
    stopped_at_start = stopped_at_start || signals.wait(0);
    return !stopped_at_start;
  };
  auto node = Node::open(application, options.program.resp, options.config, clock, make_reactor, show);
  progress.reset();
  if (!node && stopped_at_start) {
    log(LogLevel::info, "node", "stopped while recovering: {}", node.error().message);
    return ExitCode::equal;
  }
  if (!node) return report(node.error());
  log(LogLevel::info, "node", "{}", (*node)->summary());
  (*node)->start();
  log(LogLevel::info, "node", "serving {}", addresses(**node));
  if (ready_file)
    if (const auto written = ready_file->write(ready_page(**node)); !written) return report(written.error());

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
