// SPDX-License-Identifier: Apache-2.0
#pragma once

/// A history of the bank for the bench of replay: deposits and transfers among 10,000 accounts, executed live and
/// written to a journal with its hash log; and the same history executed again.

#include <cstdint>
#include <string>

namespace lockstep::bench {

struct Recording {
  std::uint64_t messages = 0;  ///< from clients; a transfer is one
  std::uint64_t bytes = 0;     ///< of journal
  double seconds = 0;          ///< from the first message to the last answer, journal written
};

/// Makes `directory` with about `bytes` of journal. As a node has it, one thread stamps, seals, journals and takes
/// answers, and the executor has another; there is no network, and the messages were made before.
[[nodiscard]] Recording record_bank(const std::string& directory, std::uint64_t bytes);

/// Seconds of a replay of all of it on this many executors, each on a thread of its own; 0 executors: one, on the
/// caller's thread. Every checkpoint is compared with the hash log; the program ends when one differs.
[[nodiscard]] double replay_bank(const std::string& directory, std::uint32_t executors, const Recording& recording);

}  // namespace lockstep::bench
