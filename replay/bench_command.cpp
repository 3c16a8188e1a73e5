// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <cstdio>
#include <memory>

#include "replay/commands.hpp"
#include "replay/progress.hpp"
#include "runtime/admin_server.hpp"
#include "runtime/load/load_report.hpp"

namespace lockstep {
namespace {

/// The program's own load, as the generator wants it.
class ProgramWorkload final : public Workload {
 public:
  explicit ProgramWorkload(void (*load)(std::uint64_t, LoadCommand&)) : load_(load), builder_(max_message_bytes) {}

  LoadRequest make(std::uint64_t index) override {
    LoadCommand command(builder_);
    load_(index, command);
    return {command.is_query() ? wire::FrameKind::query : wire::FrameKind::request, command.to(),
            command.message_type(), command.payload()};
  }

 private:
  static constexpr std::size_t max_message_bytes = 256U << 10;
  void (*load_)(std::uint64_t, LoadCommand&);
  MessageBuilder builder_;
};

Result<void> write_hgrm(const std::string& path, const LoadResult& result) {
  std::FILE* file = std::fopen(path.c_str(), "we");
  if (file == nullptr) return fail(ErrorCode::io, fmt::format("cannot write {}", path));
  const std::string text = result.latency_ns.hgrm();
  const bool written = std::fwrite(text.data(), 1, text.size(), file) == text.size();
  if (std::fclose(file) != 0 || !written) return fail(ErrorCode::io, fmt::format("cannot write {}", path));
  return {};
}

}  // namespace

ExitCode bench_command(const BenchOptions& options) {
  const auto at = parse_endpoint(options.connect);
  if (!at) return report(at.error());
  LoadOptions load = options.load;
  load.host = at->host;
  load.port = at->port;
  const auto factory = [&](std::uint32_t) { return std::make_unique<ProgramWorkload>(options.program.load); };
  Progress progress("loading", "requests", load.requests);
  const auto result = run_load(load, factory, [&](std::uint64_t answered) { progress.update(answered); });
  progress.finish();
  if (!result) return report(result.error());
  fmt::print("{}", options.json ? load_json(load, *result) + "\n" : load_text(load, *result));
  if (!options.hgrm_file.empty())
    if (const auto written = write_hgrm(options.hgrm_file, *result); !written) return report(written.error());
  if (result->disconnected) return ExitCode::failed;
  return result->complete() && result->refused == 0 ? ExitCode::equal : ExitCode::incomplete;
}

}  // namespace lockstep
