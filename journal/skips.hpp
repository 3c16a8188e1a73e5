// SPDX-License-Identifier: Apache-2.0
#pragma once

/// Skips: an operator's order to pass over a message that crashes the program. It is a record of the history
/// (RecordKind::skip, its key the sequence number to pass over), behind the message it speaks of; so whoever executes
/// the history looks for skips before anything else, and all pass over the same. A flag in the hard state says that
/// there are any, so that a journal without skips is not read twice.
///
/// Pure functions over a disk; blocking.

#include <cstdint>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "journal/disk.hpp"
#include "journal/writer.hpp"

namespace lockstep {

/// The sequence numbers to pass over, ascending.
[[nodiscard]] Result<std::vector<std::uint64_t>> read_skips(Disk& disk, const std::string& directory);

/// Adds a skip of `seq`, stamped `now_ns` (or the last stamp, if that is later), to a journal that no process uses;
/// durable when it returns, with the sequence number of the skip itself. Refuses one that the journal does not hold,
/// and one that was executed already, as a recorded root or a snapshot shows: passing over it now would be another
/// history.
[[nodiscard]] Result<std::uint64_t> append_skip(Disk& disk, const std::string& directory, std::uint64_t seq,
                                                std::int64_t now_ns, const JournalOptions& options = {});

}  // namespace lockstep
