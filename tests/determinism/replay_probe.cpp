// SPDX-License-Identifier: Apache-2.0

/// Replays a bank's journal and prints what it comes to, with as little of lockstep around the executors as can be:
/// what tests/determinism/compilers.sh builds with each compiler and optimisation level.
///
///     replay_probe DIR EXECUTORS one|dedicated      prints: batches seq root effects chain

#include <fmt/format.h>

#include <charconv>
#include <cstdio>
#include <string_view>

#include "bank.hpp"
#include "journal/posix_disk.hpp"
#include "runtime/history_run.hpp"

namespace {

using namespace lockstep;

Result<HistoryRun> replay(const char* directory, std::uint32_t executors, bool own_threads) {
  PosixDisk disk;
  const auto genesis = read_genesis(disk, directory);
  if (!genesis) return std::unexpected(genesis.error());
  if (!*genesis) return fail(ErrorCode::incomplete, "the journal is empty");
  const Application& actors = application<bank::Branch>();
  if ((*genesis)->application != actors.digest())
    return fail(ErrorCode::incompatible,
                "this compiler lays the actors out otherwise than the one that wrote the journal");
  auto reader = JournalReader::open(disk, directory);
  if (!reader) return std::unexpected(reader.error());
  Execution execution(actors, **genesis, {.executors = executors, .max_batch_bytes = 1U << 20});
  SystemClock clock;
  HistoryRunOptions options;
  options.own_threads = own_threads;
  return run_history(*reader, execution, clock, options);
}

}  // namespace

int main(int argc, char** argv) {
  std::uint32_t executors = 0;
  const std::string_view count = argc == 4 ? argv[2] : "";
  const std::string_view layout = argc == 4 ? argv[3] : "";
  std::from_chars(count.data(), count.data() + count.size(), executors);
  if (executors == 0 || (layout != "one" && layout != "dedicated")) {
    std::fputs("usage: replay_probe DIR EXECUTORS one|dedicated\n", stderr);
    return 2;
  }
  const auto run = replay(argv[1], executors, layout == "dedicated");
  if (!run) {
    fmt::print(stderr, "replay_probe: {}\n", run.error().message);
    return 1;
  }
  fmt::print("{} {} {} {} {}\n", run->last.index, run->end.seq, run->final_state.root.hex(),
             run->final_state.effects.hex(), run->final_state.chain.hex());
  return 0;
}
