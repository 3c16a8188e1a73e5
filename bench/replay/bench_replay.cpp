// SPDX-License-Identifier: Apache-2.0
// How fast is history executed again, beside how fast it was made? A journal of the bank, recorded live and replayed by
// 1, 2 and 4 executors; what a checkpoint costs by the size of the state and the share that changed; how fast a
// snapshot is written and read back.

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <vector>

#include "base/clock.hpp"
#include "bench/recovery/history.hpp"
#include "bench/replay/checkpoint_cost.hpp"
#include "bench/replay/recorded_bank.hpp"
#include "bench/snapshot/ledger.hpp"
#include "bench/support/need.hpp"
#include "bench/support/options.hpp"
#include "bench/support/report.hpp"
#include "bench/support/results.hpp"
#include "journal/posix_disk.hpp"
#include "runtime/history_start.hpp"

namespace lockstep::bench {
namespace {

constexpr double default_mib = 256;
constexpr double mib = 1048576;

double now_s() {
  return static_cast<double>(SystemClock{}.steady_ns()) / 1e9;
}

/// A directory that goes with its object.
class Directory {
 public:
  explicit Directory(const char* name)
      : path_(std::filesystem::temp_directory_path() / fmt::format("lockstep-bench-{}-{}", name, getpid())) {}
  ~Directory() { clear(); }
  Directory(const Directory&) = delete;
  Directory& operator=(const Directory&) = delete;

  [[nodiscard]] const std::string& path() const { return path_; }
  void clear() { std::filesystem::remove_all(path_); }

 private:
  std::string path_;
};

/// Values of one row, a sample each.
struct Row {
  std::string name;
  std::vector<double> values = {};

  [[nodiscard]] double median() const {
    std::vector<double> sorted = values;
    std::ranges::sort(sorted);
    return sorted[sorted.size() / 2];
  }
  [[nodiscard]] double best() const { return std::ranges::max(values); }
};

void add_rows(Table& figures, const std::string& series, const std::string& unit, const std::vector<Row>& rows) {
  for (const Row& row : rows) {
    figures.add_row({series, row.name, "-", unit, fmt::format("{:.4f}", row.median()),
                     fmt::format("{:.4f}", row.best()), fmt::format("{}", row.values.size()), "0"});
  }
}

/// Each round records a history of its own and replays it, so that both see the same spells of the machine.
void measure_replay(double seconds, double journal_mib, const Results& results, Table& figures) {
  struct Shape {
    const char* name;
    std::uint32_t executors;
  };
  constexpr std::array shapes{Shape{"replay, one thread for all", 0}, Shape{"replay, 1 executor", 1},
                              Shape{"replay, 2 executors", 2}, Shape{"replay, 4 executors", 4}};
  std::vector<Row> rows{{"live, 1 executor, journal written"}};
  for (const Shape& shape : shapes) rows.push_back({shape.name});
  Directory directory("replay");
  Recording recording;
  const double started_s = now_s();
  do {
    directory.clear();
    recording = record_bank(directory.path(), static_cast<std::uint64_t>(journal_mib * mib));
    const auto messages = static_cast<double>(recording.messages) / 1e6;
    rows.front().values.push_back(messages / recording.seconds);
    for (std::size_t i = 0; i < shapes.size(); ++i)
      rows[i + 1].values.push_back(messages / replay_bank(directory.path(), shapes[i].executors, recording));
  } while (now_s() - started_s < seconds);
  Table table({"million messages/s", "median", "best", "x live", "n"});
  Plot plot{
      .title = "replay by executors", .x_label = "executors", .y_label = "million messages a second", .lines = {}};
  plot.lines.push_back({.name = "replay", .points = {}});
  plot.lines.push_back({.name = "live", .points = {{1, rows.front().median()}, {4, rows.front().median()}}});
  for (std::size_t i = 0; i < rows.size(); ++i) {
    table.add_row({rows[i].name, fmt::format("{:.3f}", rows[i].median()), fmt::format("{:.3f}", rows[i].best()),
                   fmt::format("{:.2f}", rows[i].median() / rows.front().median()),
                   fmt::format("{}", rows[i].values.size())});
    if (i >= 1 && shapes[i - 1].executors > 0)
      plot.lines.front().points.emplace_back(shapes[i - 1].executors, rows[i].median());
  }
  fmt::print(
      "\nthe bank, half of it transfers, {:.1f} million messages in {:.0f} MiB of journal, read from the page "
      "cache\n{}",
      static_cast<double>(recording.messages) / 1e6, static_cast<double>(recording.bytes) / mib, table.text());
  add_rows(figures, "replay", "million messages/s", rows);
  results.plot("executors", plot);
}

/// State and files of the bench of recovery, which measures a whole start; here each part as a rate.
void measure_snapshots(double seconds, Table& figures) {
  constexpr double journal_mib = 64;
  Directory directory("snapshot");
  std::vector<Row> rows{{"snapshot written and verified"}, {"snapshot read, verified and restored"}};
  const double started_s = now_s();
  do {
    directory.clear();
    const SnapshotWritten written = make_history(directory.path(), static_cast<std::uint64_t>(journal_mib * mib));
    if (written.bytes == 0) give_up("no snapshot was taken");
    rows[0].values.push_back(static_cast<double>(written.bytes) / mib / written.seconds);
    drop_from_cache(directory.path());
    PosixDisk disk;
    const double before_s = now_s();
    auto start = need(find_history_start(disk, directory.path(), StartFrom::newest_snapshot));
    const auto execution = need(start.execution(LedgerNode::application(), LedgerNode::genesis(), {}));
    rows[1].values.push_back(static_cast<double>(written.bytes) / mib / (now_s() - before_s));
  } while (now_s() - started_s < seconds);
  Table table({"256 MiB of state (MiB/s)", "median", "best", "n"});
  for (const Row& row : rows) {
    table.add_row({row.name, fmt::format("{:.0f}", row.median()), fmt::format("{:.0f}", row.best()),
                   fmt::format("{}", row.values.size())});
  }
  fmt::print("\n{}", table.text());
  add_rows(figures, "snapshot", "MiB/s", rows);
}

int run(const Options& options) {
  fmt::print("{}", describe_machine());
  const Results results(options.out, "replay");
  Table figures = figures_table();
  measure_replay(options.seconds * 0.5, options.mib == 0 ? default_mib : options.mib, results, figures);
  measure_checkpoints(options.seconds * 0.3, results, figures);
  measure_snapshots(options.seconds * 0.2, figures);
  results.figures(figures);
  return 0;
}

}  // namespace
}  // namespace lockstep::bench

int main(int argc, char** argv) {
  return lockstep::bench::run(lockstep::bench::parse_options(argc, argv,
                                                             "Replay beside the live run, by executors; the cost of a "
                                                             "checkpoint by state and changed pages; snapshots written "
                                                             "and restored. --mib is the journal's size.",
                                                             60));
}
