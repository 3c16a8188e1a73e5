// SPDX-License-Identifier: Apache-2.0

/// A node with a thread for each agent, under clients of both protocols, readers of its pages and snapshots at once:
/// what ThreadSanitizer looks at. What it leaves on disk must replay to the roots it recorded, on threads and without.

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <array>
#include <atomic>
#include <filesystem>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "bank.hpp"
#include "client/socket.hpp"
#include "journal/posix_disk.hpp"
#include "journal/testing/scratch_directory.hpp"
#include "kv.hpp"
#include "kv_resp.hpp"
#include "lockstep/client.hpp"
#include "runtime/admin_server.hpp"
#include "runtime/history_run.hpp"
#include "runtime/node.hpp"
#include "runtime/recorded_roots.hpp"

using namespace lockstep;

namespace {

constexpr std::uint64_t requests_each = 1'500;

const Application& bank_and_store() {
  return application<kv::Database, bank::Branch>();
}

NodeConfig threaded_config(const std::string& data) {
  NodeConfig config;
  config.data = data;
  config.listen = "127.0.0.1:0";
  config.resp = "127.0.0.1:0";
  config.threads = "dedicated";
  config.executors = 2;
  config.perimeters = 2;
  config.max_frame_bytes = 16 << 10;
  config.max_batch_bytes = 256 << 10;
  config.segment_bytes = 1 << 20;
  config.snapshot_every_bytes = 1 << 18;
  config.genesis = {.shards = 8, .checkpoint_interval = 64, .seed = 7};
  return config;
}

/// Transfers among accounts of all branches, so that executors send to each other. Returns how many were answered.
std::uint64_t drive_bank(std::uint16_t port, std::uint64_t seed) {
  auto client = Client::connect({.port = port, .request_timeout = std::chrono::seconds(30)});
  if (!client) return 0;
  std::uint64_t answered = 0;
  constexpr std::uint64_t window = 100;
  for (std::uint64_t sent = 0; sent < requests_each; sent += window) {
    for (std::uint64_t i = 0; i < window; ++i) {
      const std::uint64_t from = (seed + sent + i) % 40;
      const std::uint64_t branch = from % bank::branches;
      const auto number =
          i % 2 == 0 ? client->send<bank::Deposit>(ref<bank::Branch>(branch), from, std::int64_t{100})
                     : client->send<bank::Transfer>(ref<bank::Branch>(branch), from, from + 1, std::int64_t{3});
      if (!number) return answered;
    }
    while (client->in_flight() != 0) answered += client->collect_any() ? 1U : 0U;
  }
  return answered;
}

/// Pipelines of SET and GET on databases of several shards. Returns how many were answered.
std::uint64_t drive_store(std::uint16_t port) {
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(30);
  auto socket = client::ClientSocket::connect("127.0.0.1", port, deadline);
  if (!socket) return 0;
  std::string commands;
  for (std::uint64_t i = 0; i < requests_each; i += 3)
    commands += fmt::format("SELECT {}\r\nSET key{} {:0>200}\r\nGET key{}\r\n", i % 16, i % 50, i, i % 50);
  std::uint64_t answered = 0;
  std::array<std::byte, 4096> buffer{};
  // Answers are +OK, +OK and a bulk of two lines: four lines for three commands.
  for (std::uint64_t lines = 0; lines < requests_each / 3 * 4;) {
    const auto written = socket->write(std::as_bytes(std::span(commands)));
    if (!written) return answered;
    commands.erase(0, *written);
    const auto read = socket->read(buffer);
    if (!read || (*read == 0 && !socket->wait(!commands.empty(), deadline))) return answered;
    lines += static_cast<std::uint64_t>(std::ranges::count(std::span(buffer).first(*read), std::byte{'\n'}));
    answered = lines * 3 / 4;
  }
  return answered;
}

/// Asks for the node's pages until `done`. Returns how often all were there.
std::uint64_t read_pages(const io::Endpoint& admin, const std::atomic<bool>& done) {
  std::uint64_t rounds = 0;
  while (!done.load(std::memory_order_acquire)) {  // pairs with the store behind the clients' end
    bool all = true;
    for (const char* page : {"/metrics", "/status", "/hash"}) all = admin_get(admin, page, 10'000).has_value() && all;
    rounds += all ? 1U : 0U;
  }
  return rounds;
}

void serve(const NodeConfig& config, Clock& clock) {
  auto node = Node::open(bank_and_store(), &kv::resp_application, config, clock,
                         [&] { return io::make_reactor(config.io, {.max_connections = 64}); });
  REQUIRE_MESSAGE(node, node.error().message);
  (*node)->start();
  std::array<std::uint64_t, 4> answered{};
  std::uint64_t rounds = 0;
  std::atomic<bool> done{false};
  std::thread reader([&] { rounds = read_pages((*node)->admin_endpoint(), done); });
  {
    const std::uint16_t native = (*node)->native_endpoint().port;
    const std::uint16_t resp = (*node)->resp_endpoint().port;
    const std::jthread first([&] { answered[0] = drive_bank(native, 0); });
    const std::jthread second([&] { answered[1] = drive_bank(native, 17); });
    const std::jthread third([&] { answered[2] = drive_store(resp); });
    const std::jthread fourth([&] { answered[3] = drive_store(resp); });
  }
  done.store(true, std::memory_order_release);  // pairs with the load in read_pages
  reader.join();
  for (const std::uint64_t count : answered) CHECK(count == requests_each);
  CHECK(rounds != 0);
  const auto metrics = admin_get((*node)->admin_endpoint(), "/metrics", 10'000);
  REQUIRE(metrics);
  for (const char* name : {"lockstep_completion_queue_overflows_total", "lockstep_receive_buffer_shortages_total",
                           "lockstep_receives_rearmed_total", "lockstep_accept_pauses_total"})
    CHECK_MESSAGE(metrics->find(name) != std::string::npos, name);
  CHECK_FALSE((*node)->failed());
  CHECK((*node)->stop());
}

Result<HistoryRun> replay(const std::string& data, std::uint32_t executors, bool own_threads, Clock& clock) {
  PosixDisk disk;
  const auto genesis = read_genesis(disk, data);
  if (!genesis) return std::unexpected(genesis.error());
  auto content = read_hash_log(disk, data);
  if (!content) return std::unexpected(content.error());
  RecordedRoots recorded(std::move(*content));
  auto reader = JournalReader::open(disk, data);
  if (!reader) return std::unexpected(reader.error());
  Execution execution(bank_and_store(), genesis->value(), {.executors = executors});
  HistoryRunOptions options;
  options.own_threads = own_threads;
  options.on_checkpoint = [&](const Checkpoint& checkpoint) { return recorded.compare(checkpoint); };
  auto run = run_history(*reader, execution, clock, options);
  if (!run) return run;
  if (auto equal = recorded.compare_end(run->final_state); !equal) return std::unexpected(equal.error());
  CHECK(recorded.compared() > 20);
  CHECK(recorded.not_recorded() == 0);
  return run;
}

}  // namespace

TEST_CASE("a start that is told to stop executes no more of the history, and the next one does") {
  const ScratchDirectory directory;
  SystemClock clock;
  NodeConfig config = threaded_config(directory.path());
  config.snapshot_every_bytes = 0;
  serve(config, clock);
  std::uint64_t asked = 0;
  const auto open = [&](std::uint64_t stop_at) {
    asked = 0;
    return Node::open(
        bank_and_store(), &kv::resp_application, config, clock,
        [&] { return io::make_reactor(config.io, {.max_connections = 64}); },
        [&](std::uint64_t, std::uint64_t) { return ++asked != stop_at; });
  };
  const auto stopped = open(2);
  REQUIRE_FALSE(stopped);
  CHECK(stopped.error().code == ErrorCode::incomplete);
  CHECK(asked == 2);
  const auto opened = open(0);
  REQUIRE_MESSAGE(opened, opened.error().message);
  CHECK(asked > 2);
}

TEST_CASE("a layout that takes more memory than there is is refused before it is taken, and leaves nothing") {
  const ScratchDirectory directory;
  SystemClock clock;
  NodeConfig config = threaded_config(directory.path() + "/made");
  config.executors = 64;
  config.perimeters = 64;
  config.batch_slabs = 1 << 20;
  config.max_batch_bytes = 64 << 20;  // 64 TiB, and the rings
  const auto refused = Node::open(bank_and_store(), &kv::resp_application, config, clock,
                                  [&] { return io::make_reactor(io::Backend::epoll, {.max_connections = 64}); });
  REQUIRE_FALSE(refused);
  CHECK(refused.error().message.find("64 executors and 64 perimeters") != std::string::npos);
  CHECK(refused.error().message.find("GiB of memory") != std::string::npos);
  CHECK_FALSE(std::filesystem::exists(config.data));
}

TEST_CASE("a node under load from both protocols and its own snapshots leaves a journal that replays to its roots") {
  const ScratchDirectory directory;
  SystemClock clock;
  serve(threaded_config(directory.path()), clock);
  // A second life goes on from a snapshot, and compares what it executes with the roots of the first.
  serve(threaded_config(directory.path()), clock);
  for (const bool own_threads : {true, false}) {
    const auto run = replay(directory.path(), 3, own_threads, clock);
    REQUIRE_MESSAGE(run, run.error().message);
    CHECK(run->handlers > 2 * 3 * requests_each);
  }
}
