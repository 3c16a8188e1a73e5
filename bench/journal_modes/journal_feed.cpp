// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <atomic>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <memory>
#include <thread>

#include "base/clock.hpp"
#include "bench/journal_modes/hot_thread.hpp"
#include "bench/support/cpu.hpp"
#include "bench/support/need.hpp"
#include "journal/posix_disk.hpp"
#include "journal/reader.hpp"
#include "journal/writer.hpp"
#include "runtime/agents/journal_agent.hpp"
#include "runtime/agents/sequencer.hpp"
#include "runtime/io/reactor.hpp"

namespace lockstep::bench {
namespace {

/// As a record log's producer naps: at a real-time priority, yielding would let nobody else run.
constexpr auto stalled_nap = std::chrono::microseconds(50);

/// A journal on a thread of its own, and the pool it is fed from, as a node has them; what executes passes at once.
class JournalThread {
 public:
  explicit JournalThread(const std::string& directory)
      : reactor_(need(io::make_reactor(io::Backend::automatic))),
        writer_(need(JournalWriter::open(reactor_->disk(), need(recover(reactor_->disk(), {.directory = directory})),
                                         {.spare_segments = 1}, {}))),
        pool_({.slabs = 16, .max_batch_bytes = 1U << 20U}),
        agent_(*writer_, pool_, Durability::fsync) {
    thread_ = std::thread([this] { run(); });
    while (!ready_.load(std::memory_order_acquire)) nap();
  }

  [[nodiscard]] BatchPool& pool() { return pool_; }

  /// Waits until all that is sealed is durable, and ends.
  void finish() {
    while (pool_.committed().read() < pool_.sealed()) {
      if (agent_.failed()) give_up(agent_.failure().message);
      nap();
    }
  }
  void stop() {
    stop_.store(true, std::memory_order_release);
    thread_.join();
  }

 private:
  static void nap() { std::this_thread::sleep_for(std::chrono::milliseconds(1)); }
  int turn() {
    const std::int64_t now_ns = clock_.steady_ns();
    const int done = reactor_->turn() + agent_.do_work({clock_.real_ns(), now_ns});
    pool_.executed(0).publish(pool_.committed().read());
    return done;
  }
  /// Sleeps when there is nothing to do, though nobody wakes it: a thread that spins here, at a real-time priority even
  /// one that yields, keeps the disk's completions from this CPU.
  int turn_or_wait() {
    constexpr std::int64_t look_again_ns = 20'000;
    const int done = turn();
    if (done == 0) reactor_->wait(look_again_ns);
    return done;
  }
  void run() {
    // Until there are two segments, and nobody makes another.
    constexpr std::int64_t quiet_ns = 50'000'000;
    for (std::int64_t busy_ns = clock_.steady_ns(); clock_.steady_ns() - busy_ns < quiet_ns || !writer_->can_append();)
      if (turn_or_wait() != 0) busy_ns = clock_.steady_ns();
    ready_.store(true, std::memory_order_release);
    while (!stop_.load(std::memory_order_acquire)) turn_or_wait();
    need(writer_->close([this] { reactor_->turn(); }));
  }

  SystemClock clock_;
  std::unique_ptr<io::Reactor> reactor_;
  std::unique_ptr<JournalWriter> writer_;
  BatchPool pool_;
  JournalAgent agent_;
  std::atomic<bool> ready_{false};  // release in run(), acquire in the constructor
  std::atomic<bool> stop_{false};   // release in stop(), acquire in run()
  std::thread thread_;
};

RecordHeader header_of(const ExecutionReport& report) {
  RecordHeader header;
  header.length = sizeof report;
  header.actor_type = 1;
  header.message_type = 1;
  header.key = report.account();
  header.request = report.number();
  header.check = record_check(header, std::as_bytes(std::span(&report, 1)));
  return header;
}

void check_journal(const std::string& directory, std::span<const ExecutionReport> reports) {
  PosixDisk disk;
  auto reader = need(JournalReader::open(disk, directory, 1));
  std::size_t next = 0;
  while (const auto batch = need(reader.next())) {
    RecordCursor records(batch->payload);
    for (auto record = records.next(); record; record = records.next(), ++next) {
      if (next >= reports.size() || record->payload.size() != sizeof(ExecutionReport) ||
          std::memcmp(record->payload.data(), &reports[next], sizeof(ExecutionReport)) != 0)
        give_up(fmt::format("{}: record {} is not as it was appended", directory, next + 1));
    }
  }
  if (next != reports.size()) give_up(fmt::format("{}: {} of {} records are there", directory, next, reports.size()));
}

}  // namespace

HotRun run_journal(const Load& load, const std::string& root) {
  const std::string directory = root + "/journal";
  pin_to_cpu(allowed_cpus().back());  // the journal's threads begin where their maker is
  JournalThread journal(directory);
  pin_to_cpu(allowed_cpus().front());
  Sequencer sequencer(journal.pool(), {}, {});
  HotRun run;
  SystemClock clock;
  const std::int64_t began_ns = clock.steady_ns();
  append_all(load, run.append_ns, [&](const ExecutionReport& report) {
    const RecordHeader header = header_of(report);
    std::byte* room = sequencer.claim(sizeof report);
    if (room == nullptr) {
      const std::int64_t stalled_ns = clock.steady_ns();
      while ((room = sequencer.claim(sizeof report)) == nullptr) std::this_thread::sleep_for(stalled_nap);
      ++run.stalls;
      run.longest_stall_ns = std::max(run.longest_stall_ns, static_cast<std::uint64_t>(clock.steady_ns() - stalled_ns));
    }
    std::memcpy(room, &report, sizeof report);
    sequencer.commit(header, report.time_ns());
    sequencer.do_work({report.time_ns(), 0});
  });
  for (; sequencer.has_open_records(); std::this_thread::sleep_for(stalled_nap))
    sequencer.do_work({load.reports.back().time_ns(), 0});
  journal.finish();
  run.drained_ms = static_cast<double>(clock.steady_ns() - began_ns) / 1e6;
  journal.stop();
  check_journal(directory, load.reports);
  std::filesystem::remove_all(directory);
  return run;
}

}  // namespace lockstep::bench
