// SPDX-License-Identifier: Apache-2.0
#include "tests/faults/promises.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "journal/inspect.hpp"
#include "journal/reader.hpp"
#include "journal/recovery.hpp"
#include "journal/repair.hpp"
#include "journal/testing/journal_run.hpp"

namespace lockstep::faults {
namespace {

constexpr int appended_afterwards = 3;

const char* name_of_code(ErrorCode code) {
  switch (code) {
    case ErrorCode::corrupt:
      return "corrupt";
    case ErrorCode::ambiguous:
      return "ambiguous";
    case ErrorCode::incompatible:
      return "incompatible";
    case ErrorCode::io:
      return "io";
    default:
      return "other";
  }
}

/// The worst that was found, as a name.
std::string verdict_of(const std::vector<Finding>& findings, bool accepted) {
  TailClass worst = TailClass::clean;
  for (const Finding& finding : findings) worst = std::max(worst, finding.tail);
  return std::string(name_of(worst)) + (worst == TailClass::ambiguous && accepted ? ", accepted" : "");
}

/// What a refusal advises: a repair makes the journal whole, with all that is owed, or says what is missing and leaves
/// it refused; by the operator's word on top of that, a journal that misses nothing starts.
Result<std::string> check_remedy(MemoryDisk& disk, const Owed& owed) {
  const auto report = repair_journal(disk, data_directory, false);
  if (!report) return std::string();  // no hard state, or another program's files
  const auto again = repair_journal(disk, data_directory, false);
  if (!again || !again->done.empty()) return broken("a second repair has something to do");
  const auto info = inspect_journal(disk, data_directory, InspectDepth::records);
  const bool sound = info && info->sound();
  if (sound) {
    const auto started = recover(disk, {.directory = data_directory, .seed = 93});
    if (!started) return broken("a repaired journal is refused: " + started.error().message);
    if (started->position.index < owed.acknowledged)
      return broken(fmt::format("a repaired journal ends with batch {}, and nothing said", started->position.index));
    if (auto read = read_all(disk, owed); !read) return std::unexpected(read.error());
    return std::string(", repaired");
  }
  if (const auto started = recover(disk, {.directory = data_directory, .seed = 93}); started)
    return broken("a journal starts that repair and inspection call damaged");
  if (!report->left.empty()) return std::string();
  const auto accepted = repair_journal(disk, data_directory, true);
  const bool of_content = info && std::ranges::all_of(info->findings, [](const Finding& finding) {
                            return finding.tail == TailClass::torn || finding.tail == TailClass::ambiguous;
                          });
  if (!of_content) return std::string();
  if (!accepted) return broken("a tail that repair calls ambiguous cannot be cut: " + accepted.error().message);
  if (const auto started = recover(disk, {.directory = data_directory, .seed = 92}); !started)
    return broken("a journal whose tail was cut is refused: " + started.error().message);
  return std::string(", cut by the operator's word");
}

Result<std::string> check_refusal(MemoryDisk& disk, const Owed& owed, const Error& refusal,
                                  const std::vector<Finding>& findings, const MemoryDisk& before) {
  if (!owed.may_refuse) return broken("a restart after a mere crash was refused: " + refusal.message);
  if (refusal.message.find(data_directory) == std::string::npos)
    return broken("a refusal does not say which file: " + refusal.message);
  if (!disk.has_files_of(before)) return broken("a refused start has changed files: " + refusal.message);
  std::string verdict = fmt::format("refused: {}", name_of_code(refusal.code));
  if (!owed.thorough) return verdict;
  const bool of_content = refusal.code == ErrorCode::corrupt || refusal.code == ErrorCode::ambiguous;
  if (of_content && !findings.empty()) {
    const auto info = inspect_journal(disk, data_directory, InspectDepth::blocks);
    if (info && info->sound()) return broken("an inspection finds a journal sound that is refused: " + refusal.message);
  }
  const auto again = recover(disk, {.directory = data_directory, .accept_tail = owed.accept_tail, .seed = 96});
  if (again || again.error().message != refusal.message) return broken("a second start is not refused like the first");
  const auto remedy = check_remedy(disk, owed);
  if (!remedy) return remedy;
  return verdict + *remedy;
}

/// The history a restart accepted, so that what follows is appended to that.
Result<void> check_going_on(MemoryDisk& disk, Owed owed, std::uint64_t recovered) {
  {
    auto run = JournalRun::start(disk, data_directory, owed.history, 95);
    if (!run) return broken("the third start failed: " + run.error().message);
    if (owed.history.size() != recovered) return broken("the third start recovered another history");
    for (int i = 0; i < appended_afterwards; ++i)
      if (!(*run)->append_random()) return broken("a recovered journal takes no batch");
    if (!(*run)->settle()) return broken("a recovered journal cannot write: " + (*run)->writer().failure()->message);
  }
  const auto again = recover(disk, {.directory = data_directory, .seed = 94});
  if (!again) return broken("a journal that went on is refused: " + again.error().message);
  if (again->position.index != recovered + appended_afterwards) return broken("what was appended afterwards is gone");
  const auto read = read_all(disk, owed);
  if (!read) return std::unexpected(read.error());
  if (*read != recovered + appended_afterwards) return broken("a reader ends elsewhere than the recovery");
  return {};
}

}  // namespace

std::unexpected<Error> broken(std::string what) {
  return fail(ErrorCode::diverged, std::move(what));
}

Result<std::uint64_t> read_all(MemoryDisk& disk, const Owed& owed) {
  auto reader = JournalReader::open(disk, data_directory, 0);
  if (!reader) return broken("a reader cannot open what was recovered: " + reader.error().message);
  std::uint64_t last = reader->position().index;
  if (last + 1 > owed.first_index)
    return broken(fmt::format("the journal begins at batch {}, and {} is owed", last + 1, owed.first_index));
  for (;;) {
    const auto batch = reader->next();
    if (!batch) return broken("a reader fails on what was recovered: " + batch.error().message);
    if (!*batch) return last;
    if ((*batch)->header->index != ++last)
      return broken(fmt::format("a reader gives a wrong batch after {}", last - 1));
    const std::uint64_t appended = owed.history.size();
    const bool known = last <= appended
                           ? std::memcmp((*batch)->header, &owed.history[last - 1], sizeof(BatchHeader)) == 0
                           : last <= appended + owed.unknown_batches;
    if (!known || batch_defect(**batch)) return broken(fmt::format("batch {} was read, and not so appended", last));
  }
}

Result<std::string> check_restart(MemoryDisk& disk, const Owed& owed) {
  const MemoryDisk before = disk.copy();
  std::vector<Finding> findings;
  HistoryPosition position;
  {
    const auto recovered =
        recover(disk, {.directory = data_directory, .accept_tail = owed.accept_tail, .seed = 99}, &findings);
    if (!recovered) return check_refusal(disk, owed, recovered.error(), findings, before);
    position = recovered->position;
  }
  if (position.index < owed.acknowledged)
    return broken(
        fmt::format("{} batches were acknowledged, {} recovered, and nothing said", owed.acknowledged, position.index));
  if (position.index > owed.history.size() + owed.unknown_batches)
    return broken(fmt::format("{} batches were appended, {} recovered", owed.history.size(), position.index));
  const auto read = read_all(disk, owed);
  if (!read) return std::unexpected(read.error());
  if (*read != position.index)
    return broken(fmt::format("{} batches recovered, a reader gives {}", position.index, *read));
  std::vector<Finding> second_findings;
  {
    const auto second = recover(disk, {.directory = data_directory, .seed = 98}, &second_findings);
    if (!second) return broken("the second start was refused: " + second.error().message);
    if (second->position != position) return broken("the second start recovered another history than the first");
  }
  if (owed.thorough)
    if (auto went = check_going_on(disk, owed, position.index); !went) return std::unexpected(went.error());
  return verdict_of(findings, owed.accept_tail);
}

}  // namespace lockstep::faults
