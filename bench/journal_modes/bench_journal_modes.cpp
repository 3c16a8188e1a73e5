// SPDX-License-Identifier: Apache-2.0

/// What does it cost a matching engine's thread to leave 200,000 execution reports of 128 bytes behind, made by the
/// book of actors/examples/matching_engine out of its order flow? A write(2) each, a record log with each of its
/// writers, and the journal; back to back, and one a microsecond. Then what durability costs beside the disk itself.

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <string>
#include <vector>

#include "bench/journal_modes/durable.hpp"
#include "bench/journal_modes/hot_thread.hpp"
#include "bench/support/cpu.hpp"
#include "bench/support/options.hpp"
#include "bench/support/report.hpp"
#include "bench/support/results.hpp"
#include "bench/support/rounds.hpp"
#include "bench/support/table.hpp"
#include "flow_run.hpp"
#include "journal/aligned_buffer.hpp"
#include "journal/testing/scratch_directory.hpp"

namespace lockstep::bench {
namespace {

using Writer = RecordLogOptions::Writer;
using WhenFull = RecordLogOptions::WhenFull;

constexpr std::size_t reports_per_run = 200'000;
constexpr std::uint64_t flow_seed = 42;
constexpr std::size_t writes_without_core = 500;     // of SQPOLL on a shared CPU: each may take milliseconds
constexpr std::size_t large_ring_bytes = 32 << 20;   // all reports of a run, with 16 bytes each for the ring's header
constexpr std::size_t small_ring_bytes = 128 << 10;  // some 900 of them

/// One way to log, and what all of its runs came to.
struct Way {
  std::string name;
  std::function<HotRun(const Load&)> run;
  std::size_t reports = reports_per_run;
  std::vector<HotRun> runs = {};
};

/// For a kernel thread that polls, beside the hot thread's and the writer's.
bool spare_core() {
  return allowed_cpus().size() > 2;
}

std::string ring_name(Writer writer, bool polled) {
  if (writer == Writer::blocking) return "ring + blocking";
  if (!polled) return "ring + io_uring";
  return spare_core() ? "ring + io_uring + SQPOLL" : "ring + io_uring + SQPOLL without a core";
}

std::vector<Way> ways_to_log(const std::string& directory) {
  std::vector<Way> ways;
  ways.push_back({"naive write(2)", [=](const Load& load) { return run_naive_write(load, directory); }});
  const auto add = [&](const std::string& name, const RecordLogOptions& options) {
    ways.push_back({name, [=](const Load& load) { return run_record_log(load, directory, options); }});
  };
  for (const std::uint32_t batch : {1U, 4U, 16U, 64U, 256U}) {
    RecordLogOptions options{.ring_bytes = large_ring_bytes, .batch_records = batch};
    add(fmt::format("{}, batch {}", ring_name(Writer::blocking, false), batch), options);
    options.writer = Writer::uring;
    add(fmt::format("{}, batch {}", ring_name(Writer::uring, false), batch), options);
    options.sqpoll_cpu = spare_core() ? allowed_cpus()[1] : allowed_cpus().back();
    options.sqpoll_forced = true;
    const std::string polled = fmt::format("{}, batch {}", ring_name(Writer::uring, true), batch);
    const std::size_t reports = spare_core() ? reports_per_run : batch * writes_without_core;
    ways.push_back(
        {polled, [=](const Load& load) { return run_record_log(load.first(reports), directory, options); }, reports});
  }
  for (const Writer writer : {Writer::blocking, Writer::uring})
    for (const WhenFull when_full : {WhenFull::block, WhenFull::drop})
      add(fmt::format("{}, small ring, {}", ring_name(writer, false), when_full == WhenFull::block ? "block" : "drop"),
          {.ring_bytes = small_ring_bytes, .when_full = when_full, .writer = writer});
  ways.push_back({"the journal, fsync", [=](const Load& load) { return run_journal(load, directory); }});
  return ways;
}

template <class Of>
std::vector<double> sorted(const Way& way, Of of) {
  std::vector<double> values;
  for (const HotRun& run : way.runs) values.push_back(static_cast<double>(of(run)));
  std::ranges::sort(values);
  return values;
}

/// Median and best of a figure over a way's runs.
template <class Of>
std::string both(const Way& way, Of of) {
  const std::vector<double> values = sorted(way, of);
  if (values.empty()) return "-";
  return fmt::format("{:.0f} ({:.0f})", values[values.size() / 2], values.front());
}

template <class Of>
double median(const Way& way, Of of) {
  const std::vector<double> values = sorted(way, of);
  return values.empty() ? 0 : values[values.size() / 2];
}

template <class Of>
std::string cell(const Way& way, Of of) {
  return way.runs.empty() ? "-" : fmt::format("{:.0f}", median(way, of));
}

constexpr auto percentile(double percent) {
  return [percent](const HotRun& run) { return run.append_ns.percentile(percent); };
}

Table table_of_ways(const std::vector<Way>& ways) {
  Table table({"append, ns: median (best)", "reports", "runs", "p50", "p99", "p99.9", "max", "written after ms",
               "stalls", "longest stall us", "dropped"});
  for (const Way& way : ways) {
    table.add_row({way.name, fmt::format("{}", way.reports), fmt::format("{}", way.runs.size()),
                   both(way, percentile(50)), both(way, percentile(99)), both(way, percentile(99.9)),
                   both(way, [](const HotRun& run) { return run.append_ns.max(); }),
                   both(way, [](const HotRun& run) { return run.drained_ms; }),
                   cell(way, [](const HotRun& run) { return run.stalls; }),
                   both(way, [](const HotRun& run) { return run.longest_stall_ns / 1000; }),
                   cell(way, [](const HotRun& run) { return run.dropped; })});
  }
  return table;
}

void add_way_figures(Table& figures, const std::vector<Way>& ways, const std::string& load) {
  const auto add = [&](const Way& way, const char* figure, const char* unit, const auto& of) {
    const std::vector<double> values = sorted(way, of);
    if (values.empty()) return;
    figures.add_row({load, way.name, fmt::format("{}", way.reports), figure, unit,
                     fmt::format("{:.1f}", values[values.size() / 2]), fmt::format("{:.1f}", values.front()),
                     fmt::format("{}", values.size())});
  };
  for (const Way& way : ways) {
    add(way, "p50", "ns", percentile(50));
    add(way, "p99", "ns", percentile(99));
    add(way, "p99.9", "ns", percentile(99.9));
    add(way, "max", "ns", [](const HotRun& run) { return run.append_ns.max(); });
    add(way, "drained", "ms", [](const HotRun& run) { return run.drained_ms; });
    add(way, "stalls", "", [](const HotRun& run) { return run.stalls; });
    add(way, "longest stall", "ns", [](const HotRun& run) { return run.longest_stall_ns; });
    add(way, "dropped", "", [](const HotRun& run) { return run.dropped; });
  }
}

void keep_distributions(const Results& results, const std::vector<Way>& ways, const std::string& load) {
  Plot plot = percentile_plot(fmt::format("appending an execution report, {}", load));
  for (const Way& way : ways) {
    Histogram all;
    for (const HotRun& run : way.runs) all.merge(run.append_ns);
    results.distribution(fmt::format("{} {}", load, way.name), all);
    const bool shown = !way.name.contains("batch") || way.name.ends_with("batch 64");
    if (shown && all.count() != 0) plot.lines.push_back(percentile_line(way.name, all));
  }
  results.plot(load, plot);
}

void measure_hot_thread(const std::vector<ExecutionReport>& reports, double period_ns, double seconds,
                        const Results& results, Table& figures) {
  const ScratchDirectory directory;
  const Load load{reports, period_ns, calibrate_ticks()};
  const std::string name = period_ns == 0 ? "back to back" : "one a microsecond";
  std::vector<Way> ways = ways_to_log(directory.path());
  std::vector<Case> cases;
  for (Way& way : ways) {
    cases.push_back({way.name, [&way, &load] {
                       way.runs.push_back(way.run(load));
                       return Sample{static_cast<double>(way.runs.back().append_ns.percentile(99)), false};
                     }});
  }
  const Series series =
      allowed_cpus().size() > 1 ? run_probed_rounds(cases, seconds) : run_plain_rounds(cases, seconds);
  fmt::print("\nexecution reports, {}; measuring nothing reads {:.0f} ns\n{}{}", name, load.clock.empty_section_ns,
             describe_regimes(series), table_of_ways(ways).text());
  const Way& naive = ways.front();
  const Way& ring = *std::ranges::find(ways, "ring + blocking, batch 64", &Way::name);
  if (!naive.runs.empty() && !ring.runs.empty())
    fmt::print("the ring, whoever writes, in times of a write(2): p50 {:.0f}x, p99 {:.0f}x, p99.9 {:.0f}x less\n",
               median(naive, percentile(50)) / median(ring, percentile(50)),
               median(naive, percentile(99)) / median(ring, percentile(99)),
               median(naive, percentile(99.9)) / median(ring, percentile(99.9)));
  add_way_figures(figures, ways, name);
  keep_distributions(results, ways, name);
}

std::string judge(const Series& series, const std::string& ours, const std::string& floor, double goal, bool at_least) {
  const auto one = series.of(ours).median(Regime::one_cpu);
  const auto other = series.of(floor).median(Regime::one_cpu);
  if (!one || !other) return fmt::format("{}: too few samples\n", ours);
  const double ratio = *one / *other;
  return fmt::format("{} / {}: {:.2f}x, goal {} {:.1f}x: {}\n", ours, floor, ratio, at_least ? "at least" : "at most",
                     goal, (at_least ? ratio >= goal : ratio <= goal) ? "reached" : "NOT reached");
}

void add_durable_figures(Table& figures, const Series& series, Better better, const std::string& name,
                         const std::string& figure, const std::string& unit) {
  for (const Outcome& outcome : series.outcomes) {
    const auto best = outcome.best(Regime::one_cpu, better);
    if (!best) continue;
    figures.add_row({name, outcome.name, "", figure, unit, fmt::format("{:.1f}", *outcome.median(Regime::one_cpu)),
                     fmt::format("{:.1f}", *best), fmt::format("{}", outcome.in(Regime::one_cpu).size())});
  }
}

void measure_group_commit(double seconds, Table& figures) {
  const ScratchDirectory directory;
  constexpr std::uint32_t sample_bytes = 16 << 20;
  std::vector<std::unique_ptr<DurableLoad>> loads;
  std::vector<Case> cases;
  std::vector<std::string> sizes;
  for (const std::uint32_t block_bytes : {16U << 10, 64U << 10, 256U << 10}) {
    loads.push_back(std::make_unique<DurableLoad>(block_bytes, sample_bytes / block_bytes));
    sizes.push_back(fmt::format("{} KiB", block_bytes >> 10));
    const DurableLoad& load = *loads.back();
    const auto mb_per_s = [&load](double took) { return Sample{load.bytes() / took / 1e6, false}; };
    cases.push_back(
        {"journal, " + sizes.back(), [&, mb_per_s] { return mb_per_s(load.journal_seconds(directory.path())); }});
    cases.push_back(
        {"raw disk, " + sizes.back(), [&, mb_per_s] { return mb_per_s(load.raw_seconds(directory.path())); }});
  }
  const Series series = run_plain_rounds(cases, seconds);
  fmt::print("\ndurable group commit, 8 blocks in flight (MB/s)\n{}", table_of(series, Better::higher).text());
  for (const std::string& size : sizes)
    fmt::print("{}", judge(series, "journal, " + size, "raw disk, " + size, 0.9, true));
  add_durable_figures(figures, series, Better::higher, "group commit", "rate", "MB/s");
}

void measure_latency(double seconds, const Results& results, Table& figures) {
  const ScratchDirectory directory;
  const DurableLoad load(disk_block_bytes, 400);
  Histogram journal_ns;
  Histogram raw_ns;
  const auto sample = [](Histogram& all, const Histogram& run) {
    all.merge(run);
    return Sample{static_cast<double>(run.percentile(50)) / 1000, false};
  };
  const std::vector<Case> cases{
      {"journal, one record", [&] { return sample(journal_ns, load.journal_latency_ns(directory.path())); }},
      {"bare WRITE, then FSYNC", [&] { return sample(raw_ns, load.raw_latency_ns(directory.path())); }}};
  const Series series = run_plain_rounds(cases, seconds);
  fmt::print("\ndurable latency of one record, one at a time (p50, us)\n{}{}", table_of(series, Better::lower).text(),
             judge(series, "journal, one record", "bare WRITE, then FSYNC", 1.2, false));
  for (const auto& [name, all] : {std::pair("journal", &journal_ns), std::pair("bare", &raw_ns)})
    fmt::print("{}: p50 {:.0f}, p99 {:.0f}, p99.9 {:.0f}, max {:.0f} us over {} records\n", name,
               static_cast<double>(all->percentile(50)) / 1e3, static_cast<double>(all->percentile(99)) / 1e3,
               static_cast<double>(all->percentile(99.9)) / 1e3, static_cast<double>(all->max()) / 1e3, all->count());
  add_durable_figures(figures, series, Better::lower, "durable latency", "p50", "us");
  results.distribution("durable journal", journal_ns);
  results.distribution("durable bare", raw_ns);
  Plot plot = percentile_plot("durable latency of one record");
  plot.lines = {percentile_line("journal", journal_ns), percentile_line("bare WRITE, then FSYNC", raw_ns)};
  results.plot("durable latency", plot);
}

/// What a thread costs that spins on the CPU from which the disk is written (docs/failure-modes.md).
void measure_beside_spinner(double seconds, Table& figures) {
  const ScratchDirectory directory;
  const DurableLoad load(disk_block_bytes, 50);
  const int here = allowed_cpus().front();
  const auto p50_us = [](const Histogram& run) {
    return Sample{static_cast<double>(run.percentile(50)) / 1000, false};
  };
  const auto beside = [&](auto measure) {
    return [&, measure] {
      const Spinner spinner(here);
      return p50_us((load.*measure)(directory.path()));
    };
  };
  const auto alone = [&](auto measure) { return [&, measure] { return p50_us((load.*measure)(directory.path())); }; };
  const std::vector<Case> cases{
      {"journal", alone(&DurableLoad::journal_latency_ns)},
      {"journal, beside a spinner", beside(&DurableLoad::journal_latency_ns)},
      {"WRITE, then FSYNC", alone(&DurableLoad::raw_latency_ns)},
      {"WRITE, then FSYNC, beside a spinner", beside(&DurableLoad::raw_latency_ns)},
      {"WRITE with RWF_DSYNC", alone(&DurableLoad::dsync_latency_ns)},
      {"WRITE with RWF_DSYNC, beside a spinner", beside(&DurableLoad::dsync_latency_ns)},
  };
  const Series series = run_plain_rounds(cases, seconds);
  fmt::print("\ndurable latency of one record with and without a spinner on the same CPU (p50, us)\n{}",
             table_of(series, Better::lower).text());
  add_durable_figures(figures, series, Better::lower, "beside a spinner", "p50", "us");
}

int run(const Options& options) {
  fmt::print("{}", describe_machine());
  if (allowed_cpus().size() < 2)
    fmt::print("one CPU: the log's threads take turns with the hot one, and its figures show that\n");
  if (!spare_core())
    fmt::print("no core to spare for SQPOLL: its thread shares the log's, and a run has {} batches\n",
               writes_without_core);
  const Results results(options.out, "journal-modes");
  Table figures({"load", "way", "reports", "figure", "unit", "median", "best", "samples"});
  const std::vector<ExecutionReport> reports = matching::execution_reports(flow_seed, reports_per_run);
  measure_hot_thread(reports, 0, options.seconds * 0.4, results, figures);
  measure_hot_thread(reports, 1000, options.seconds * 0.4, results, figures);
  pin_to_cpu(allowed_cpus().front());
  measure_group_commit(options.seconds * 0.1, figures);
  measure_latency(options.seconds * 0.1, results, figures);
  measure_beside_spinner(options.seconds * 0.05, figures);
  results.figures(figures);
  return 0;
}

}  // namespace
}  // namespace lockstep::bench

int main(int argc, char** argv) {
  return lockstep::bench::run(lockstep::bench::parse_options(
      argc, argv,
      "What leaving an execution report behind costs the thread that makes it: write(2), a record log by blocking "
      "writes, by io_uring, with SQPOLL, and the journal; then the journal's durability beside the disk's own.",
      180));
}
