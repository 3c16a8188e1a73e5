// SPDX-License-Identifier: Apache-2.0
// Exactly once, through everything that loses answers: cut connections, copies out of order, expiry, power cuts.
#include <doctest/doctest.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <deque>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "bank.hpp"
#include "tests/simulation/simulated_client.hpp"
#include "tests/simulation/simulated_node.hpp"

using namespace lockstep;
using namespace lockstep::testing;

namespace {

constexpr std::int64_t expiry_ns = 60'000'000'000;

std::string frame(wire::FrameKind kind, const wire::Hello& hello) {
  wire::FrameHeader header;
  header.kind = kind;
  header.length = sizeof hello;
  std::string bytes(reinterpret_cast<const char*>(&header), sizeof header);
  return bytes.append(reinterpret_cast<const char*>(&hello), sizeof hello);
}

/// Asked by a client of its own. The account must have had a deposit.
std::int64_t balance_of(SimulatedNode& simulated, ManualClock& clock, std::uint64_t account) {
  const auto connection = simulated.network().connect();
  wire::Hello hello;
  hello.capabilities = wire::capability_queries;
  simulated.network().client_sends(connection, frame(wire::FrameKind::hello, hello));
  simulated.settle(clock);
  MessageBuilder builder(1024);
  const auto payload = builder.encode<bank::GetBalance>(account);
  wire::FrameHeader header;
  header.kind = wire::FrameKind::query;
  header.request = 1;
  header.message_type = message_id<bank::GetBalance>;
  header.actor_type = name_id(bank::Branch::name);
  header.key = account % bank::branches;
  header.length = static_cast<std::uint32_t>(payload.size());
  std::string bytes(reinterpret_cast<const char*>(&header), sizeof header);
  bytes.append(reinterpret_cast<const char*>(payload.data()), payload.size());
  simulated.network().client_sends(connection, bytes);
  simulated.settle(clock);
  const std::string read = simulated.network().client_reads(connection);
  alignas(16) std::byte aligned[256];
  const std::size_t hello_bytes = sizeof header + sizeof(wire::HelloOk);
  REQUIRE(read.size() > hello_bytes + sizeof header);
  std::memcpy(aligned, read.data() + hello_bytes + sizeof header, read.size() - hello_bytes - sizeof header);
  std::memcpy(&header, read.data() + hello_bytes, sizeof header);
  REQUIRE(header.kind == wire::FrameKind::reply);
  return decode<bank::Balance>(aligned).amount();
}

class Campaign {
 public:
  explicit Campaign(std::uint64_t seed) : random_(seed), clock_(1'700'000'000'000'000'000), disk_(seed) {
    for (std::uint64_t i = 0; i < 3; ++i) clients_.emplace_back(100 + i, seed * 10 + i);
  }

  /// What the clients went through, over all campaigns.
  struct Ordeal {
    std::uint64_t answered = 0;
    std::uint64_t unknown = 0;
    std::uint64_t resumed = 0;
  };

  Ordeal run() {
    const std::uint64_t lives = 1 + random_() % 4;
    for (std::uint64_t life = 0; life < lives; ++life) live(life + 1 == lives);
    Ordeal ordeal;
    for (const SimulatedClient& client : clients_) {
      check(client);
      ordeal.answered += client.answered();
      ordeal.unknown += client.unknown();
      ordeal.resumed += client.resumed();
    }
    return ordeal;
  }

 private:
  /// From a start to a power cut, or to the end of it all.
  void live(bool last) {
    SimulatedNode simulated(application<bank::Branch>(), nullptr, std::move(disk_), clock_,
                            1 + static_cast<std::uint32_t>(random_() % 3));
    REQUIRE_MESSAGE(simulated.refusal().empty(), simulated.refusal());
    for (SimulatedClient& client : clients_) client.node_lost();
    if (!last) simulated.disk().fail_at(20 + random_() % 100, MemoryDisk::Fault::power_cut, 5);
    for (int step = 0; step < 400 && !simulated.node().failed(); ++step) {
      for (SimulatedClient& client : clients_) client.act(simulated.network());
      turn(simulated);
      if (random_() % 300 == 0) clock_.advance(expiry_ns);
    }
    if (last) {
      finish(simulated);
      for (const SimulatedClient& client : clients_)
        balances_[client.account()] = balance_of(simulated, clock_, client.account());
      return;
    }
    // What left the node before the power went has left.
    for (int i = 0; i < 4; ++i) simulated.node().turn();
    for (SimulatedClient& client : clients_) client.read(simulated.network());
    disk_ = simulated.disk().after_power_cut(random_());
  }
  void turn(SimulatedNode& simulated) {
    for (std::uint64_t turns = random_() % 4; turns > 0; --turns) simulated.node().turn();
    clock_.advance(static_cast<std::int64_t>(random_() % 3'000'000));
  }
  void finish(SimulatedNode& simulated) {
    const auto done = [this] {
      return std::ranges::all_of(clients_, [](const SimulatedClient& client) { return client.all_answered(); });
    };
    for (int step = 0; step < 2000 && !done(); ++step) {
      for (SimulatedClient& client : clients_) client.finish(simulated.network());
      for (int i = 0; i < 3; ++i) simulated.node().turn();
      clock_.advance(100'000);
    }
    REQUIRE(done());
    // Late copies run now, if they run at all.
    simulated.settle(clock_);
  }

  void check(const SimulatedClient& client) {
    CAPTURE(client.account());
    CHECK(client.complaint() == "");
    const auto balance = static_cast<std::uint64_t>(balances_[client.account()]);
    CHECK(client.answered() + client.unknown() == client.sent());
    // Each answered deposit ran once; of what is unknown, each at most once.
    CHECK(balance >= client.answered());
    CHECK(balance <= client.sent());
  }

  std::mt19937_64 random_;
  ManualClock clock_;
  MemoryDisk disk_;
  std::deque<SimulatedClient> clients_;
  std::map<std::uint64_t, std::int64_t> balances_;
};

}  // namespace

TEST_CASE("every request runs once and has one answer, whatever is lost on the way") {
  // LOCKSTEP_SEED=N runs that seed alone; LOCKSTEP_SEEDS=N the first N.
  if (const char* one = std::getenv("LOCKSTEP_SEED"); one != nullptr) {  // NOLINT(concurrency-mt-unsafe): one thread
    Campaign(std::strtoull(one, nullptr, 10)).run();
    return;
  }
  const char* const many = std::getenv("LOCKSTEP_SEEDS");  // NOLINT(concurrency-mt-unsafe): one thread
  const std::uint64_t seeds = many != nullptr ? std::strtoull(many, nullptr, 10) : 30;
  Campaign::Ordeal whole;
  for (std::uint64_t seed = 1; seed <= seeds; ++seed) {
    INFO("repeat with: LOCKSTEP_SEED=", seed, " ", std::string(program_invocation_name),
         " -tc='every request runs once*'");
    const Campaign::Ordeal ordeal = Campaign(seed).run();
    whole.answered += ordeal.answered;
    whole.unknown += ordeal.unknown;
    whole.resumed += ordeal.resumed;
  }
  // It was one.
  CHECK(whole.answered > 100 * seeds);
  CHECK(whole.resumed > 3 * seeds);
  CHECK(whole.unknown > 0);
}

TEST_CASE("the news that a session ended may reach its client before the last answers do") {
  Campaign(44).run();
}

TEST_CASE("a client that is not connected reads nobody else's answers") {
  Campaign(463).run();
}

TEST_CASE("a client whose connection was closed reads what came before the end") {
  Campaign(116).run();
}

TEST_CASE("a node that does not wait for its disk loses only what it did not wait for, and starts again") {
  // Journal and hash log may end anywhere behind what was waited for. The next start takes that up, and calls it no
  // damage.
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    CAPTURE(seed);
    std::mt19937_64 random(seed);
    ManualClock clock(1'700'000'000'000'000'000);
    MemoryDisk disk(seed);
    std::deque<SimulatedClient> clients;
    std::vector<std::uint64_t> answered;
    // Each client belongs to one life: with fsync, then twice without.
    for (const Durability durability : {Durability::fsync, Durability::none, Durability::write}) {
      SimulatedNode simulated(application<bank::Branch>(), nullptr, std::move(disk), clock, 2, 0, durability);
      REQUIRE_MESSAGE(simulated.refusal().empty(), simulated.refusal());
      SimulatedClient& client = clients.emplace_back(200 + clients.size(), seed * 10 + clients.size());
      for (int step = 0; step < 300; ++step) {
        // In the end the disk falls behind: what is executed then is nowhere but in memory.
        if (step == 200 && durability != Durability::fsync) simulated.disk().complete_only(0);
        client.act(simulated.network());
        for (std::uint64_t turns = random() % 4; turns > 0; --turns) simulated.node().turn();
        clock.advance(static_cast<std::int64_t>(random() % 3'000'000));
      }
      REQUIRE_FALSE(simulated.node().failed());
      client.read(simulated.network());
      answered.push_back(client.answered());
      disk = simulated.disk().after_power_cut(random());
      simulated.disk().complete_only(UINT64_MAX);  // a node that ends waits for what is under way
    }
    SimulatedNode simulated(application<bank::Branch>(), nullptr, std::move(disk), clock, 1);
    REQUIRE_MESSAGE(simulated.refusal().empty(), simulated.refusal());
    simulated.settle(clock);
    const auto balance = static_cast<std::uint64_t>(balance_of(simulated, clock, 200));
    CHECK(balance >= answered[0]);
    CHECK(balance <= clients[0].sent());
    CHECK(answered[1] > 0);
  }
}
