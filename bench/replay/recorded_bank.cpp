// SPDX-License-Identifier: Apache-2.0
#include "bench/replay/recorded_bank.hpp"

#include <fmt/format.h>

#include <array>
#include <cstring>
#include <memory>
#include <vector>

#include "bank.hpp"
#include "base/assert.hpp"
#include "base/clock.hpp"
#include "bench/support/need.hpp"
#include "journal/posix_disk.hpp"
#include "runtime/agents/checkpoint_agent.hpp"
#include "runtime/agents/frames.hpp"
#include "runtime/agents/journal_agent.hpp"
#include "runtime/agents/sequencer.hpp"
#include "runtime/history_run.hpp"
#include "runtime/recorded_roots.hpp"
#include "runtime/runner.hpp"

namespace lockstep::bench {
namespace {

constexpr std::uint64_t account_count = 10'000;
constexpr std::uint32_t max_batch_bytes = 256U << 10U;

const Application& bank_application() {
  return application<bank::Branch>();
}

Genesis genesis_of_bank() {
  Genesis genesis;
  genesis.application = bank_application().digest();
  return genesis;
}

struct Prepared {
  RecordHeader header;
  alignas(16) std::array<std::byte, 80> payload{};
};

/// Every other message a transfer, which is a message to a second branch too.
std::vector<Prepared> prepare_messages() {
  std::vector<Prepared> messages(16'384);
  MessageBuilder builder(4096);
  std::uint64_t state = 1;
  const auto random = [&state] {
    state = state * 6364136223846793005U + 1442695040888963407U;
    return state >> 33U;
  };
  for (std::size_t i = 0; i < messages.size(); ++i) {
    const std::uint64_t account = i < account_count ? i : random() % account_count;
    const bool transfer = i >= account_count && i % 2 == 0;
    const auto payload = transfer ? builder.encode<bank::Transfer>(account, random() % account_count, std::int64_t{1})
                                  : builder.encode<bank::Deposit>(account, std::int64_t{100});
    LOCKSTEP_ASSERT(payload.size() <= messages[i].payload.size(), "the bank's messages are small");
    std::memcpy(messages[i].payload.data(), payload.data(), payload.size());
    RecordHeader& header = messages[i].header;
    header.length = static_cast<std::uint32_t>(payload.size());
    header.actor_type = name_id(bank::Branch::name);
    header.message_type = transfer ? message_id<bank::Transfer> : message_id<bank::Deposit>;
    header.key = account % bank::branches;
    header.session = session_number(1, 0, 1);
    header.request = 1;
    header.check = record_check(header, payload);
  }
  return messages;
}

class Recorder {
 public:
  explicit Recorder(const std::string& directory)
      : recovered_(need(recover(disk_, {.directory = directory}))),
        log_(need(HashLog::open(disk_, directory, recovered_.hard_state.value().cluster_id, 0, 0))),
        writer_(need(JournalWriter::open(disk_, std::move(recovered_), {}, bank_application().schema()))),
        execution_(bank_application(), genesis_of_bank(),
                   {.executors = 1, .perimeters = 1, .slabs = 16, .max_batch_bytes = max_batch_bytes}),
        sequencer_(execution_.pool(), {}, {.schema_id = bank_application().schema_id()}),
        journal_(*writer_, execution_.pool(), Durability::write),
        checkpoints_(execution_.board(), log_, true),
        executor_({.name = "executor", .spin_ns = 100'000}, clock_, nullptr, {&execution_.agent(0)}) {
    sequencer_.add_due(execution_.due(0));
    sequencer_.append_genesis(encode(genesis_of_bank()), clock_.real_ns());
    executor_.start();
  }

  Recording record(std::uint64_t bytes) {
    const std::vector<Prepared> messages = prepare_messages();
    const std::int64_t started_ns = clock_.steady_ns();
    std::uint64_t sent = 0;
    while (writer_->counters().bytes < bytes) {
      const std::int64_t now_ns = clock_.real_ns();
      for (int i = 0; i < sends_per_turn && send(messages[sent % messages.size()], now_ns); ++i) ++sent;
      turn();
    }
    while (answered_ < sent) turn();
    const double seconds = static_cast<double>(clock_.steady_ns() - started_ns) / 1e9;
    executor_.request_stop();
    executor_.join();
    while (checkpoints_.do_work({}) > 0) {
    }
    BatchPool& pool = execution_.pool();
    while (pool.written().read() < pool.sealed()) journal_.do_work({0, clock_.steady_ns()});
    const std::uint64_t written_bytes = writer_->counters().bytes;
    need(writer_->close());
    LOCKSTEP_ASSERT(answered_ == sent, "every message is answered once");
    return {sent, written_bytes, seconds};
  }

 private:
  static constexpr int sends_per_turn = 256;

  bool send(const Prepared& message, std::int64_t now_ns) {
    std::byte* const room = sequencer_.claim(message.header.length);
    if (room == nullptr) return false;
    std::memcpy(room, message.payload.data(), message.header.length);
    sequencer_.commit(message.header, now_ns);
    return true;
  }

  void turn() {
    const Now now{clock_.real_ns(), clock_.steady_ns()};
    sequencer_.do_work(now);
    journal_.do_work(now);
    executor_.notify();
    checkpoints_.do_work(now);
    ByteRing& replies = execution_.replies(0, 0);
    for (auto frame = replies.peek(); !frame.empty(); frame = replies.peek()) {
      ++answered_;
      replies.release();
    }
    replies.flush();
  }

  SystemClock clock_;
  PosixDisk disk_;
  Recovered recovered_;
  HashLog log_;
  std::unique_ptr<JournalWriter> writer_;
  Execution execution_;
  Sequencer sequencer_;
  JournalAgent journal_;
  CheckpointAgent checkpoints_;
  Runner executor_;
  std::uint64_t answered_ = 0;
};

}  // namespace

Recording record_bank(const std::string& directory, std::uint64_t bytes) {
  return std::make_unique<Recorder>(directory)->record(bytes);
}

double replay_bank(const std::string& directory, std::uint32_t executors, const Recording& recording) {
  SystemClock clock;
  PosixDisk disk;
  RecordedRoots recorded(need(read_hash_log(disk, directory)));
  const std::int64_t started_ns = clock.steady_ns();
  JournalReader reader = need(JournalReader::open(disk, directory));
  Execution execution(bank_application(), genesis_of_bank(),
                      {.executors = std::max(executors, 1U), .max_batch_bytes = max_batch_bytes});
  HistoryRunOptions options;
  options.own_threads = executors != 0;
  options.on_checkpoint = [&](const Checkpoint& checkpoint) { return recorded.compare(checkpoint); };
  const HistoryRun run = need(run_history(reader, execution, clock, options));
  const double seconds = static_cast<double>(clock.steady_ns() - started_ns) / 1e9;
  need(recorded.compare_end(run.final_state));
  if (recorded.compared() == 0 || recorded.not_recorded() != 0 || run.handlers < recording.messages)
    give_up(
        fmt::format("{}: the replay is not of the whole history: {} checkpoints, {} of them not recorded, {} handlers",
                    directory, recorded.compared(), recorded.not_recorded(), run.handlers));
  return seconds;
}

}  // namespace lockstep::bench
