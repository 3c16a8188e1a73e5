// SPDX-License-Identifier: Apache-2.0
#pragma once

/// A data directory of the ledger for the benches of recovery and of replay: a snapshot of 256 MiB of state and a
/// journal behind it.

#include <cstdint>
#include <string>
#include <vector>

namespace lockstep::bench {

struct SnapshotWritten {
  std::uint64_t bytes = 0;
  double seconds = 0;  ///< from the request to its being stored; the node does little else meanwhile
};

/// Writes the directory: some messages, a snapshot, then `bytes` of journal.
SnapshotWritten make_history(const std::string& directory, std::uint64_t bytes);

/// Its segments and snapshots, in order.
[[nodiscard]] std::vector<std::string> files_of(const std::string& directory);

/// So that the next reader of the files pays for the disk.
void drop_from_cache(const std::string& directory);

/// A whole node's start, up to its being ready, and its end.
void start_node(const std::string& directory);

}  // namespace lockstep::bench
