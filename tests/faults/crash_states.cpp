// SPDX-License-Identifier: Apache-2.0

/// Crash states: a journal with up to K = 4 writes under way, and the power goes. Each piece of each of them, a
/// sector or 512 bytes, is on the medium or not: all combinations where they can be counted through, else drawn ones.

#include <fmt/format.h>

#include <bit>

#include "journal/testing/journal_run.hpp"
#include "tests/faults/campaign.hpp"
#include "tests/faults/promises.hpp"

namespace {

using namespace lockstep;
using namespace lockstep::faults;

/// How a journal came to its writes under way.
struct Scenario {
  const char* name;
  std::vector<std::uint32_t> before;     ///< batches made durable first: their only record's payload bytes
  bool idle;                             ///< then a MARK
  std::vector<std::uint32_t> in_flight;  ///< batches submitted and not completed
  std::size_t completed;                 ///< of those, how many were written before the cut, though not synced
  std::size_t schema_bytes;
};

constexpr std::uint32_t one_sector = 1000;
constexpr std::uint32_t two_sectors = 4060;  // more than an INLINE block holds: header and one payload sector
constexpr std::uint32_t four_sectors = 12000;
/// Leaves room for a SEAL and nothing else behind it, with `small_journal`.
constexpr std::uint32_t rest_of_segment = 12 << 10;

const Scenario scenarios[] = {
    {"first batch of a journal", {}, false, {one_sector}, 0, 0},
    {"four of a sector, first of a journal", {}, false, {one_sector, one_sector, one_sector, one_sector}, 0, 0},
    {"four of two sectors", {one_sector}, false, {two_sectors, two_sectors, two_sectors, two_sectors}, 0, 0},
    {"mixed sizes behind a MARK", {one_sector, two_sectors}, true, {two_sectors, one_sector, four_sectors, 0}, 0, 0},
    {"four sectors each", {two_sectors}, false, {four_sectors, four_sectors, four_sectors, four_sectors}, 0, 0},
    {"half written, none synced", {one_sector}, false, {two_sectors, two_sectors, two_sectors, two_sectors}, 2, 0},
    {"behind a schema", {}, false, {two_sectors, one_sector, two_sectors}, 0, 5000},
    {"ticks", {0}, false, {0, 0, 0, 0}, 0, 0},
    {"a SEAL under way",
     {four_sectors, four_sectors, rest_of_segment, one_sector},
     false,
     {one_sector, four_sectors},
     0,
     0},
    {"first of the second segment",
     {four_sectors, four_sectors, rest_of_segment, rest_of_segment},
     false,
     {two_sectors, two_sectors, one_sector},
     0,
     0},
};

struct State {
  State() = default;
  State(const State&) = delete;
  State& operator=(const State&) = delete;
  ~State() { disk.complete_only(UINT64_MAX); }  // the writer waits for what is under way

  MemoryDisk disk{1};
  Owed owed;
  std::unique_ptr<JournalRun> run;
};

OwnedBatch batch_of(BatchMaker& maker, std::uint32_t bytes) {
  return bytes == 0 ? maker.make({}) : maker.make({bytes});
}

/// Brings a journal to the moment before the cut.
Result<std::unique_ptr<State>> prepare(const Scenario& scenario) {
  auto state = std::make_unique<State>();
  const std::vector<std::byte> schema(scenario.schema_bytes, std::byte{7});
  auto run = JournalRun::start(state->disk, data_directory, state->owed.history, 1, small_journal, schema);
  if (!run) return std::unexpected(run.error());
  state->run = std::move(*run);
  for (int i = 0; i < 10; ++i) state->run->poll();  // spare segments
  for (const std::uint32_t bytes : scenario.before)
    if (!state->run->append(batch_of(state->run->maker(), bytes)) || !state->run->settle())
      return fail(ErrorCode::io, "the preparation failed");
  if (scenario.idle) state->run->advance(10'000'000);
  for (int i = 0; i < 5; ++i) state->run->poll();
  state->disk.complete_only(0);
  for (const std::uint32_t bytes : scenario.in_flight) state->run->append(batch_of(state->run->maker(), bytes));
  if (scenario.completed > 0) {
    state->disk.complete_only(scenario.completed);
    state->run->poll();
  }
  state->owed.acknowledged = state->run->writer().durable_index();
  return state;
}

struct Granularity {
  std::size_t piece_bytes;
  std::uint64_t most_short;  ///< states tried: all when there are no more
  std::uint64_t most_long;
};
constexpr Granularity granularities[] = {{disk_block_bytes, 4'096, 65'536}, {device_piece_bytes, 5'200, 131'072}};

void run_states(Campaign& campaign, const State& state, const Granularity& pieces) {
  const std::size_t questions = state.disk.questions(pieces.piece_bytes);
  const std::uint64_t most = campaign.is_long() ? pieces.most_long : pieces.most_short;
  const bool all = questions < 64 && std::uint64_t{1} << questions <= most;
  const std::uint64_t states = all ? std::uint64_t{1} << questions : most;
  for (std::uint64_t subset = 0; subset < states; ++subset) {
    campaign.run([&]() -> Result<std::string> {
      std::mt19937_64 random = campaign.random_of(campaign.next_case());
      const Survival drawn = draw_survivors(random);
      const auto survives = [&](std::size_t n) { return all ? (subset >> n & 1) != 0 : drawn(n); };
      MemoryDisk after = state.disk.after_power_cut(survives, pieces.piece_bytes);
      Owed owed = state.owed;
      owed.thorough = subset % (campaign.is_long() ? 4 : 16) == 0;
      return check_restart(after, owed);
    });
  }
}

}  // namespace

int main(int argc, char** argv) {
  Campaign campaign(
      "Cuts the power with up to four journal writes under way, and keeps each subset of their sectors, and of their\n"
      "512-byte pieces. Nothing acknowledged may be lost, nothing else accepted, and no operator be needed.",
      argc, argv);
  std::vector<std::unique_ptr<State>> states;
  std::uint64_t cases = 0;
  for (const Scenario& scenario : scenarios) {
    auto state = prepare(scenario);
    if (!state) {
      fmt::print(stderr, "{}: {}\n", scenario.name, state.error().message);
      return 1;
    }
    states.push_back(std::move(*state));
    for (const Granularity& pieces : granularities) {
      const std::size_t questions = states.back()->disk.questions(pieces.piece_bytes);
      const std::uint64_t most = campaign.is_long() ? pieces.most_long : pieces.most_short;
      cases += questions < 40 ? std::min(std::uint64_t{1} << questions, most) : most;
    }
  }
  campaign.expect(cases);
  for (const auto& state : states)
    for (const Granularity& pieces : granularities) run_states(campaign, *state, pieces);
  return campaign.finish();
}
