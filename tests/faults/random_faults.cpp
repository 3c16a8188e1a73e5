// SPDX-License-Identifier: Apache-2.0

/// Random faults: lives of processes on one directory, each with faults drawn for it: errors, short writes, a full
/// disk, writes lost or misdirected, bits that rot, sectors that cannot be read, power cuts and kills, over a disk that
/// completes in any order and at times not at all. A case is one directory's fate over several lives.
///
/// Crashes and errors that the disk reports lose nothing. What the disk does behind everybody's back may end in a
/// refusal; what it does to the last K batches before a MARK vouches for them may look like a torn tail.

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>

#include "journal/recovery.hpp"
#include "journal/testing/journal_run.hpp"
#include "tests/faults/campaign.hpp"
#include "tests/faults/promises.hpp"

namespace {

using namespace lockstep;
using namespace lockstep::faults;

constexpr int lives = 6;

class Fate {
 public:
  explicit Fate(std::uint64_t seed) : random_(seed), disk_(seed), honest_(chance(2)) {}

  Result<std::string> run();

 private:
  [[nodiscard]] bool chance(std::uint64_t one_in) { return random_() % one_in == 0; }
  void plan_faults();
  void live(JournalRun& run);
  void end_life(std::unique_ptr<JournalRun> run);
  void rot();
  [[nodiscard]] Result<std::string> restart_unreadable();

  std::mt19937_64 random_;
  MemoryDisk disk_;
  bool honest_;  ///< the disk does nothing that it does not report
  Owed owed_;
  std::uint64_t vouched_ = 0;  ///< acknowledged, and nothing the disk does behind our back goes unnoticed
  bool lied_ = false;          ///< the disk did something behind our back in this life or after it
};

void Fate::plan_faults() {
  disk_.shuffle_completions();
  lied_ = false;
  const auto at = [&] { return 1 + random_() % 60; };
  switch (random_() % (honest_ ? 6 : 8)) {
    case 0:
      return disk_.fail_at(at(), DiskFault::error, EIO);
    case 1:
      return disk_.fail_at(at(), DiskFault::error, ENOSPC);
    case 2:
      return disk_.fail_at(at(), DiskFault::short_write, EIO);
    case 3:
      return disk_.fail_at(at(), DiskFault::power_cut, EIO);
    case 4:
      return disk_.set_free_bytes(random_() % (4 * min_segment_bytes));
    case 6:
      lied_ = true;
      return disk_.fail_at(at(), DiskFault::lost_write, 0);
    case 7:
      lied_ = true;
      return disk_.fail_at(at(), DiskFault::misdirected_write, 0);
    default:
      return;
  }
}

void Fate::live(JournalRun& run) {
  const int turns = static_cast<int>(random_() % 60);
  for (int turn = 0; turn < turns && !run.writer().failure(); ++turn) {
    disk_.complete_only(chance(6) ? random_() % 3 : UINT64_MAX);
    if (!chance(3) && run.writer().can_append()) run.append_random();
    if (chance(12)) run.advance(2'000'000);
    run.poll();
  }
  disk_.complete_only(UINT64_MAX);
  if (chance(3)) run.settle();
  if (chance(4)) static_cast<void>(run.writer().close());
}

void Fate::end_life(std::unique_ptr<JournalRun> run) {
  const std::uint64_t durable = run->writer().durable_index();
  owed_.acknowledged = std::max(owed_.acknowledged, durable);
  // The last block that is there states what was durable when it was submitted, no more than K blocks before.
  vouched_ = durable - std::min<std::uint64_t>(durable, small_journal.max_inflight);
  const bool power_goes = disk_.faults().dead() || chance(2);
  if (!power_goes) {
    run.reset();
    disk_ = disk_.copy();
    return;
  }
  MemoryDisk left = disk_.after_power_cut(random_());
  run.reset();
  disk_ = std::move(left);
}

void Fate::rot() {
  const auto names = disk_.list(data_directory);
  if (!names || names->empty()) return;
  const std::string path = data_directory + "/" + (*names)[random_() % names->size()];
  const std::size_t bytes = disk_.bytes(path).size();
  if (bytes == 0) return;
  disk_.flip_bit(path, random_() % (bytes * 8));
  lied_ = true;
}

/// A sector that cannot be read: refused or passed, and nothing is changed for it to be read again later.
Result<std::string> Fate::restart_unreadable() {
  const auto names = disk_.list(data_directory);
  if (!names || names->empty()) return "nothing to read";
  MemoryDisk worn = disk_.copy();
  const std::string path = data_directory + "/" + (*names)[random_() % names->size()];
  const std::size_t bytes = worn.bytes(path).size();
  if (chance(2)) {
    worn.faults().at_read(1 + random_() % 20);
  } else if (bytes > 0) {
    worn.make_unreadable(path, random_() % bytes);
  }
  const auto recovered = recover(worn, {.directory = data_directory, .seed = 1 + random_() % 1000});
  if (!recovered) {
    if (!worn.has_files_of(disk_)) return fail(ErrorCode::diverged, "a start refused for a read error changed files");
    return "refused";
  }
  if (recovered->position.index < vouched_)
    return fail(ErrorCode::diverged,
                fmt::format("a read error hid batches: {} of {} recovered", recovered->position.index, vouched_));
  return "read";
}

Result<std::string> Fate::run() {
  std::string verdict = "untouched";
  for (int life = 0; life < lives; ++life) {
    plan_faults();
    auto run = JournalRun::start(disk_, data_directory, owed_.history, random_());
    if (run) {
      live(**run);
      end_life(std::move(*run));
    } else if (disk_.faults().dead()) {
      disk_ = disk_.after_power_cut(random_());
    } else {
      disk_ = disk_.copy();
    }
    if (!honest_ && chance(5)) rot();
    if (!lied_)
      if (const auto worn = restart_unreadable(); !worn) return worn;
    Owed owed = owed_;
    owed.acknowledged = lied_ ? std::min(vouched_, owed_.acknowledged) : owed_.acknowledged;
    owed.may_refuse = lied_;
    // Looked at in a copy: the next life is to meet what this one left.
    MemoryDisk looked_at = disk_.copy();
    auto outcome = check_restart(looked_at, owed);
    if (!outcome) return fail(outcome.error().code, fmt::format("life {}: {}", life + 1, outcome.error().message));
    verdict = *outcome;
    if (verdict.starts_with("refused")) return verdict;
    if (lied_) {
      // What was lost unseen is no longer owed; and it is found by now or never.
      const auto kept = recover(looked_at = disk_.copy(), {.directory = data_directory, .seed = 77});
      if (kept) owed_.acknowledged = std::min(owed_.acknowledged, kept->position.index);
    }
  }
  return verdict;
}

}  // namespace

int main(int argc, char** argv) {
  Campaign campaign(
      "Lets processes live and die on one directory, on a disk that fails, lies, rots and fills as drawn. Nothing "
      "that\n"
      "was acknowledged may be lost unseen, and after mere crashes and reported errors no start may be refused.",
      argc, argv);
  const std::uint64_t fates = campaign.is_long() ? 60'000 : 1'500;
  campaign.expect(fates);
  for (std::uint64_t i = 0; i < fates; ++i) campaign.run([&] { return Fate(campaign.seed() * 1'000'003 + i).run(); });
  return campaign.finish();
}
