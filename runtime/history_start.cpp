// SPDX-License-Identifier: Apache-2.0
#include "runtime/history_start.hpp"

#include "base/log.hpp"
#include "runtime/history_run.hpp"

namespace lockstep {

Result<std::unique_ptr<Execution>> HistoryStart::execution(const Application& application, const Genesis& of,
                                                           Execution::Options options) {
  options.last_index = position.index;
  if (auto room = Execution::require_room(application, of, options); !room) return std::unexpected(room.error());
  auto made = std::make_unique<Execution>(application, of, options);
  if (!snapshot) return made;
  if (auto restored = made->restore(*snapshot); !restored) return std::unexpected(restored.error());
  return made;
}

Result<HistoryStart> find_history_start(Disk& disk, const std::string& directory, StartFrom from) {
  auto choice = choose_snapshot(
      disk, directory, from == StartFrom::earliest ? SnapshotPreference::first_batch : SnapshotPreference::newest);
  if (!choice) return std::unexpected(choice.error());
  for (const std::string& why : choice->passed_over) log(LogLevel::warning, "snapshot", "passed over: {}", why);
  HistoryStart start;
  if (!choice->snapshot) {
    auto genesis = read_genesis(disk, directory);
    if (!genesis) return std::unexpected(genesis.error());
    start.genesis = *genesis;
    return start;
  }
  start.snapshot.emplace(std::move(*choice->snapshot));
  start.position = position_of(start.snapshot->header());
  auto genesis = decode_genesis(start.snapshot->genesis());
  if (!genesis) return std::unexpected(genesis.error());
  start.genesis = *genesis;
  return start;
}

}  // namespace lockstep
