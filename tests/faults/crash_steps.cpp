// SPDX-License-Identifier: Apache-2.0

/// Crash steps: each procedure of a journal (tests/faults/scenarios.hpp) is ended at each of its disk operations: by a
/// power cut, by an error, a short write, or a full disk. After a power cut the start that follows is cut at each of
/// its operations too, and the one after that.

#include <fmt/format.h>

#include <cerrno>

#include "journal/recovery.hpp"
#include "tests/faults/campaign.hpp"
#include "tests/faults/scenarios.hpp"

namespace {

using namespace lockstep;
using namespace lockstep::faults;

constexpr std::uint64_t disk_seed = 11;
constexpr std::uint64_t start_operations = 24;  ///< the most a start of these journals takes, about

/// How a procedure is ended, and what is left of it.
struct End {
  const char* name;
  DiskFault fault;
  int error;
  bool power_goes;  ///< also when the fault is no power cut
};
constexpr End ends[] = {
    {"a power cut", DiskFault::power_cut, EIO, true},
    {"an error", DiskFault::error, EIO, false},
    {"an error, then a power cut", DiskFault::error, EIO, true},
    {"a short write", DiskFault::short_write, EIO, false},
    {"a full disk", DiskFault::error, ENOSPC, false},
    {"a full disk, then a power cut", DiskFault::error, ENOSPC, true},
};

/// Runs a scenario up to its end at operation `nth`; 0 for no fault.
std::unique_ptr<Situation> run_until(const Scenario& scenario, const End& end, std::uint64_t nth) {
  auto at = std::make_unique<Situation>(disk_seed);
  if (!scenario.prepare(*at)) return nullptr;
  if (nth != 0) at->disk.fail_at(nth, end.fault, end.error);
  scenario.act(*at);
  if (at->run) at->owed.acknowledged = std::max(at->owed.acknowledged, at->run->writer().durable_index());
  return at;
}

/// What the process, or the power, left behind; the process ends with it.
MemoryDisk left_by(Situation& at, const End& end, std::uint64_t seed) {
  MemoryDisk left = end.power_goes ? at.disk.after_power_cut(seed) : at.disk.copy();
  at.run.reset();
  return left;
}

std::unexpected<Error> with_place(const Scenario& scenario, const End& end, std::uint64_t nth, const Error& error) {
  return fail(error.code,
              fmt::format("{}, ended by {} at operation {}: {}", scenario.name, end.name, nth, error.message));
}

/// Operations the scenario takes when nothing happens.
std::uint64_t operations_of(const Scenario& scenario) {
  Situation at(disk_seed);
  if (!scenario.prepare(at)) return 0;
  const std::uint64_t before = at.disk.operations();
  scenario.act(at);
  return at.disk.operations() - before;
}

void end_at_each_operation(Campaign& campaign, const Scenario& scenario, const End& end, std::uint64_t operations) {
  const std::uint64_t outcomes = !end.power_goes ? 1 : campaign.is_long() ? 64 : 4;
  for (std::uint64_t nth = 1; nth <= operations; ++nth)
    for (std::uint64_t outcome = 0; outcome < outcomes; ++outcome)
      campaign.run([&]() -> Result<std::string> {
        const auto at = run_until(scenario, end, nth);
        if (!at) return fail(ErrorCode::io, "the preparation failed");
        MemoryDisk left = left_by(*at, end, campaign.random_of(campaign.next_case())());
        auto verdict = scenario.check(*at, left);
        if (!verdict) return with_place(scenario, end, nth, verdict.error());
        return verdict;
      });
}

/// The start after the cut is cut, and so is the one after it.
void cut_the_starts_too(Campaign& campaign, const Scenario& scenario, std::uint64_t operations) {
  const std::uint64_t stride = campaign.is_long() ? 1 : 11;
  for (std::uint64_t nth = 1; nth <= operations; ++nth)
    for (std::uint64_t start = 1 + (nth + campaign.seed()) % stride; start <= start_operations; start += stride)
      campaign.run([&]() -> Result<std::string> {
        std::mt19937_64 random = campaign.random_of(campaign.next_case());
        const auto at = run_until(scenario, ends[0], nth);
        if (!at) return fail(ErrorCode::io, "the preparation failed");
        MemoryDisk left = left_by(*at, ends[0], random());
        for (const std::uint64_t cut : {start, 1 + random() % start_operations}) {
          left.fail_at(cut, DiskFault::power_cut, EIO);
          static_cast<void>(
              recover(left, {.directory = data_directory, .accept_tail = at->owed.accept_tail, .seed = cut}));
          left = left.after_power_cut(random());
        }
        auto verdict = scenario.check(*at, left);
        if (!verdict) return with_place(scenario, ends[0], nth, verdict.error());
        return verdict;
      });
}

}  // namespace

int main(int argc, char** argv) {
  Campaign campaign(
      "Ends each procedure of a journal at each of its disk operations, by a power cut, an error, a short write or a\n"
      "full disk, and cuts the starts that follow as well. What was acknowledged must be there, without an operator.",
      argc, argv);
  for (const auto scenarios : {journal_scenarios(), snapshot_scenarios()})
    for (const Scenario& scenario : scenarios) {
      const std::uint64_t operations = operations_of(scenario);
      if (operations == 0) {
        fmt::print(stderr, "{}: the preparation failed, or there was nothing to do\n", scenario.name);
        return 1;
      }
      for (const End& end : ends) end_at_each_operation(campaign, scenario, end, operations);
      cut_the_starts_too(campaign, scenario, operations);
    }
  return campaign.finish();
}
