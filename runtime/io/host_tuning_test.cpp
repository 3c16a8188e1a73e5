// SPDX-License-Identifier: Apache-2.0
#include "runtime/io/host_tuning.hpp"

#include <doctest/doctest.h>

#include <algorithm>

using namespace lockstep::io;

namespace {

TuningFacts eight_cpus() {
  TuningFacts facts;
  facts.cpus = {0, 1, 2, 3, 4, 5, 6, 7};
  facts.receive_buffer_bytes = 6291456;
  facts.send_buffer_bytes = 4194304;
  return facts;
}

Capability row(const TuningFacts& facts, const char* part) {
  const auto rows = judge_tuning(facts);
  const auto found =
      std::ranges::find_if(rows, [&](const Capability& each) { return each.feature.find(part) != std::string::npos; });
  REQUIRE(found != rows.end());
  // What is not as it should be says what is used instead and what to change; what is good says neither.
  CHECK(found->good == found->instead.empty());
  CHECK(found->good == found->remedy.empty());
  CHECK(!found->here.empty());
  return *found;
}

}  // namespace

TEST_CASE("lists of CPUs are read and written as the kernel does") {
  CHECK(cpus_of_list("0-2,5") == std::vector<int>{0, 1, 2, 5});
  CHECK(cpus_of_list("3") == std::vector<int>{3});
  CHECK(cpus_of_list("").empty());
  CHECK(cpus_of_list("(null)").empty());
  CHECK(cpus_of_list("1-").empty());
  CHECK(list_of_cpus({0, 1, 2, 5}) == "0-2,5");
  CHECK(list_of_cpus({}).empty());
  CHECK(list_of_cpus({4, 6}) == "4,6");
}

TEST_CASE("interrupts on every CPU are to be moved to the first one, where there are CPUs enough") {
  TuningFacts facts = eight_cpus();
  facts.interrupts = {{36, {0, 1, 2, 3}}, {38, {4, 5, 6, 7}}};
  const Capability crowded = row(facts, "without interrupts");
  CHECK(!crowded.good);
  CHECK(crowded.here == "none");
  CHECK(crowded.remedy == "for i in 36 38; do echo 0 > /proc/irq/$i/smp_affinity_list; done");

  facts.interrupts = {{36, {0}}, {38, {1}}};
  CHECK(row(facts, "without interrupts").good);
  CHECK(row(facts, "without interrupts").here == "2-7");

  facts.cpus = {0, 1};
  CHECK(row(facts, "without interrupts").good);
  CHECK(row(facts, "without interrupts").here == "2 CPUs: none to set aside");
}

TEST_CASE("an interrupt on an isolated CPU is named, even when other CPUs are free of them") {
  TuningFacts facts = eight_cpus();
  facts.isolated = {6, 7};
  facts.interrupts = {{36, {0}}, {38, {7}}};
  const Capability disturbed = row(facts, "without interrupts");
  CHECK(!disturbed.good);
  CHECK(disturbed.remedy == "for i in 38; do echo 0 > /proc/irq/$i/smp_affinity_list; done");
}

TEST_CASE("irqbalance is in the way only where it may move interrupts to CPUs that matter") {
  TuningFacts facts = eight_cpus();
  CHECK(row(facts, "irqbalance").good);
  facts.irqbalance_runs = true;
  CHECK(!row(facts, "irqbalance").good);
  facts.isolated = {6, 7};
  CHECK(row(facts, "irqbalance").good);
  facts.isolated = {};
  facts.cpus = {0, 1};
  CHECK(row(facts, "irqbalance").good);
}

TEST_CASE("isolating CPUs is proposed from four CPUs on, and leaves the first to the system") {
  TuningFacts facts = eight_cpus();
  const Capability shared = row(facts, "isolcpus");
  CHECK(!shared.good);
  CHECK(shared.remedy == "boot with isolcpus=1-7, start the node with taskset -c 1-7 and pin = true under [threads]");
  facts.isolated = {4, 5, 6, 7};
  CHECK(row(facts, "isolcpus").here == "4-7");
  facts.isolated = {};
  facts.cpus = {0, 1, 2};
  CHECK(row(facts, "isolcpus").good);
}

TEST_CASE("isolated CPUs are to have neither the tick nor RCU's callbacks") {
  TuningFacts facts = eight_cpus();
  CHECK(row(facts, "nohz_full").good);  // nothing is isolated: another row says so
  facts.isolated = {6, 7};
  const Capability ticking = row(facts, "nohz_full");
  CHECK(!ticking.good);
  CHECK(ticking.here == "tick on 6-7, RCU callbacks on every CPU");
  CHECK(ticking.remedy == "boot with nohz_full=6-7 rcu_nocbs=6-7");
  facts.rcu_offloaded = true;
  CHECK(row(facts, "nohz_full").here == "tick on 6-7");
  facts.tickless = {6};
  CHECK(row(facts, "nohz_full").here == "tick on 7");
  facts.tickless = {6, 7};
  facts.rcu_offloaded = false;  // nohz_full= offloads them too
  CHECK(row(facts, "nohz_full").good);
}

TEST_CASE("socket buffers smaller than Linux's own are too small; unknown ones are left alone") {
  TuningFacts facts = eight_cpus();
  CHECK(row(facts, "tcp_rmem").good);
  CHECK(row(facts, "tcp_wmem").good);
  facts.receive_buffer_bytes = 212992;
  facts.send_buffer_bytes = 212992;
  CHECK(row(facts, "tcp_rmem").here == "up to 208 KiB");
  CHECK(!row(facts, "tcp_rmem").good);
  CHECK(!row(facts, "tcp_wmem").good);
  facts.receive_buffer_bytes.reset();
  CHECK(row(facts, "tcp_rmem").good);
}

TEST_CASE("the facts of this host are read") {
  const TuningFacts facts = read_tuning_facts();
  CHECK(!facts.cpus.empty());
  CHECK(std::ranges::is_sorted(facts.cpus));
  for (const DeviceInterrupt& interrupt : facts.interrupts) CHECK(!interrupt.cpus.empty());
  CHECK(judge_tuning(facts).size() == 6);
}
