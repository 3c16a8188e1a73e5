// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <map>
#include <optional>
#include <random>

#include "journal/snapshots.hpp"
#include "kv.hpp"
#include "kv_resp.hpp"
#include "tests/simulation/simulated_node.hpp"

using namespace lockstep;
using namespace lockstep::testing;

namespace {

std::string set_command(int number) {
  const std::string key = fmt::format("k{}", number);
  const std::string value = fmt::format("v{}", number);
  return fmt::format("*3\r\n$3\r\nSET\r\n${}\r\n{}\r\n${}\r\n{}\r\n", key.size(), key, value.size(), value);
}

std::string get_command(int number) {
  const std::string key = fmt::format("k{}", number);
  return fmt::format("*2\r\n$3\r\nGET\r\n${}\r\n{}\r\n", key.size(), key);
}

/// A client that sets k0, k1, … in pipelines and counts what was acknowledged.
struct Writer {
  io::ConnectionId connection{};
  int sent = 0;
  int acknowledged = 0;

  void send(FakeNetwork& network, int count) {
    for (int i = 0; i < count; ++i) network.client_sends(connection, set_command(sent++));
  }
  void read(FakeNetwork& network) {
    const std::string answers = network.client_reads(connection);
    for (std::size_t at = answers.find("+OK\r\n"); at != std::string::npos; at = answers.find("+OK\r\n", at + 5))
      ++acknowledged;
  }
};

/// Writes until the power goes at a random operation of the disk; returns what a restart finds, and what was promised.
struct Outcome {
  MemoryDisk disk;
  int acknowledged = 0;
};
Outcome write_until_power_cut(std::uint64_t seed, MemoryDisk disk, ManualClock& clock, int already_sent,
                              std::uint64_t cut_at = 0, std::uint64_t snapshot_every_bytes = 0) {
  std::mt19937_64 random(seed);
  SimulatedNode simulated(application<kv::Database>(), &kv::resp_application, std::move(disk), clock,
                          1 + static_cast<std::uint32_t>(random() % 3), snapshot_every_bytes);
  REQUIRE_MESSAGE(simulated.refusal().empty(), simulated.refusal());
  simulated.disk().fail_at(cut_at != 0 ? cut_at : 1 + random() % 60, MemoryDisk::Fault::power_cut, 5);
  Writer writer{simulated.network().connect(SimulatedNode::resp_listener), already_sent, already_sent};
  while (!simulated.node().failed()) {
    writer.send(simulated.network(), 1 + static_cast<int>(random() % 20));
    for (int turns = static_cast<int>(random() % 6); turns >= 0; --turns) simulated.node().turn();
    clock.advance(static_cast<std::int64_t>(random() % 3'000'000));
    writer.read(simulated.network());
  }
  simulated.settle(clock);
  writer.read(simulated.network());
  return {simulated.disk().after_power_cut(seed), writer.acknowledged};
}

void check_promises(SimulatedNode& simulated, ManualClock& clock, int acknowledged) {
  const auto reader = simulated.network().connect(SimulatedNode::resp_listener);
  for (int i = 0; i < acknowledged; ++i) simulated.network().client_sends(reader, get_command(i));
  simulated.settle(clock);
  std::string expected;
  for (int i = 0; i < acknowledged; ++i) {
    const std::string value = fmt::format("v{}", i);
    expected += fmt::format("${}\r\n{}\r\n", value.size(), value);
  }
  CHECK(simulated.network().client_reads(reader) == expected);
}

std::optional<std::uint64_t> number_in_environment(const char* name) {
  const char* const text = std::getenv(name);  // NOLINT(concurrency-mt-unsafe): one thread
  return text == nullptr ? std::nullopt : std::optional(std::strtoull(text, nullptr, 10));
}

void run_seed(std::uint64_t seed) {
  INFO("repeat with: LOCKSTEP_SEED=", seed, " ", std::string(program_invocation_name),
       " -tc='*has every acknowledged write'");
  ManualClock clock(1'700'000'000'000'000'000);
  Outcome outcome = write_until_power_cut(seed, MemoryDisk(seed), clock, 0);
  outcome = write_until_power_cut(seed + 1000, std::move(outcome.disk), clock, outcome.acknowledged);
  SimulatedNode restarted(application<kv::Database>(), &kv::resp_application, std::move(outcome.disk), clock, 2);
  REQUIRE_MESSAGE(restarted.refusal().empty(), restarted.refusal());
  check_promises(restarted, clock, outcome.acknowledged);
}

}  // namespace

TEST_CASE("whatever a power cut leaves, a restarted node has every acknowledged write") {
  // LOCKSTEP_SEED=N runs that seed alone, LOCKSTEP_SEEDS=N the first N.
  if (const auto one = number_in_environment("LOCKSTEP_SEED")) return run_seed(*one);
  for (std::uint64_t seed = 1; seed <= number_in_environment("LOCKSTEP_SEEDS").value_or(24); ++seed) run_seed(seed);
}

TEST_CASE("T50: a power cut at any operation of a node that takes snapshots loses nothing that it acknowledged") {
  constexpr std::uint64_t every_bytes = 64 << 10;
  constexpr std::uint64_t first_cut = 40;  // by then some checkpoints have passed
  std::size_t named = 0;
  std::size_t half_made = 0;
  for (std::uint64_t cut_at = first_cut; cut_at < first_cut + 120; ++cut_at) {
    CAPTURE(cut_at);
    ManualClock clock(1'700'000'000'000'000'000);
    Outcome outcome = write_until_power_cut(cut_at, MemoryDisk(cut_at), clock, 0, cut_at, every_bytes);
    if (cut_at % 4 == 0)
      outcome =
          write_until_power_cut(cut_at + 1, std::move(outcome.disk), clock, outcome.acknowledged, 60, every_bytes);
    const auto names = outcome.disk.list("/node");
    REQUIRE(names);
    const auto snapshots = list_snapshots(outcome.disk, "/node");
    REQUIRE(snapshots);
    if (!snapshots->empty()) ++named;
    if (std::ranges::any_of(*names, is_half_made_snapshot)) ++half_made;
    SimulatedNode restarted(application<kv::Database>(), &kv::resp_application, std::move(outcome.disk), clock, 2,
                            every_bytes);
    REQUIRE_MESSAGE(restarted.refusal().empty(), restarted.refusal());
    check_promises(restarted, clock, outcome.acknowledged);
  }
  CHECK(named > 10);
  CHECK(half_made > 0);
}

TEST_CASE("a node that lost its disk acknowledges nothing more, and says so") {
  ManualClock clock(1'700'000'000'000'000'000);
  SimulatedNode simulated(application<kv::Database>(), &kv::resp_application, MemoryDisk(3), clock, 1);
  REQUIRE_MESSAGE(simulated.refusal().empty(), simulated.refusal());
  Writer writer{simulated.network().connect(SimulatedNode::resp_listener)};
  writer.send(simulated.network(), 10);
  simulated.settle(clock);
  writer.read(simulated.network());
  CHECK(writer.acknowledged == 10);
  simulated.disk().fail_at(1, MemoryDisk::Fault::error, 5);
  writer.send(simulated.network(), 10);
  simulated.settle(clock);
  writer.read(simulated.network());
  CHECK(writer.acknowledged == 10);
  CHECK(simulated.node().failed());
  CHECK(simulated.node().failure().message.find("Input/output error") != std::string::npos);
}
