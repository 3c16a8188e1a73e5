// SPDX-License-Identifier: Apache-2.0
#pragma once

/// Skips: an operator's order to pass over a message that crashes the program. It is a record of the history
/// (RecordKind::skip, its key the sequence number to pass over), behind the message it speaks of; so whoever executes
/// the history looks for skips before anything else, and all pass over the same. A flag in the hard state says that
/// there are any, so that a journal without skips is not read twice.
///
/// Pure functions over a disk; blocking.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "journal/disk.hpp"
#include "journal/verdict.hpp"
#include "journal/writer.hpp"

namespace lockstep {

/// Whether a batch is an order to skip, which has a batch for itself.
[[nodiscard]] bool is_skip(const BatchView& batch);

/// The sequence numbers to pass over, ascending. The hard state's flag is right behind a start, which sets it when it
/// meets a skip; before one, say by `look` that there are some, or may be: a hard state restored from a backup may be
/// older than they.
[[nodiscard]] Result<std::vector<std::uint64_t>> read_skips(Disk& disk, const std::string& directory,
                                                            bool look = false);

/// Adds a skip of `seq`, stamped `now_ns` (or the last stamp, if that is later), to a journal that no process uses;
/// durable when it returns, with the sequence number of the skip itself. `deadly` is the one that a node halts before
/// (runtime/breadcrumbs.hpp), and no other may be passed over: whatever else is in the journal was executed, perhaps
/// answered, or will be, and without it there would be another history. Refuses, too, one that the journal does not
/// hold, and one that a recorded root or a snapshot shows to have been executed. A refusal changes nothing; else what a
/// start would cut or make good is, and is told in `findings`.
[[nodiscard]] Result<std::uint64_t> append_skip(Disk& disk, const std::string& directory, std::uint64_t seq,
                                                std::optional<std::uint64_t> deadly, std::int64_t now_ns,
                                                const JournalOptions& options = {},
                                                std::vector<Finding>* findings = nullptr);

}  // namespace lockstep
