// SPDX-License-Identifier: Apache-2.0
#include "runtime/io/host_tuning.hpp"

#include <fmt/format.h>
#include <sched.h>

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>

#include "runtime/io/proc_files.hpp"

namespace lockstep::io {
namespace {

namespace fs = std::filesystem;

// With fewer, setting one aside takes more from a node than the disturbance does.
constexpr std::size_t cpus_to_set_aside_from = 4;
// Linux's own limits are 6 MiB and 4 MiB where there is memory enough; a batch on its way to a peer needs as much.
constexpr std::int64_t least_buffer_bytes = std::int64_t{4} << 20;

std::vector<int> cpus_without(const std::vector<int>& cpus, const std::set<int>& taken) {
  std::vector<int> rest;
  std::ranges::copy_if(cpus, std::back_inserter(rest), [&](int cpu) { return !taken.contains(cpu); });
  return rest;
}

std::string none_to_spare(const TuningFacts& facts) {
  return fmt::format("{} CPUs: none to set aside", facts.cpus.size());
}

bool may_set_aside(const TuningFacts& facts) {
  return facts.cpus.size() >= cpus_to_set_aside_from;
}

/// The CPUs to propose: all but the first, which is left to the system and its interrupts.
std::string proposal(const TuningFacts& facts) {
  return list_of_cpus(std::vector<int>(facts.cpus.begin() + 1, facts.cpus.end()));
}

std::string move_interrupts(const TuningFacts& facts, const std::vector<int>& numbers) {
  std::string list;
  for (const int number : numbers) list += fmt::format("{}{}", list.empty() ? "" : " ", number);
  return fmt::format("for i in {}; do echo {} > /proc/irq/$i/smp_affinity_list; done", list, facts.cpus.front());
}

Capability judge_interrupts(const TuningFacts& facts) {
  const std::string feature = "CPUs without interrupts of disks and network";
  std::set<int> taken;
  std::vector<int> all;
  std::vector<int> on_isolated;
  for (const DeviceInterrupt& interrupt : facts.interrupts) {
    taken.insert(interrupt.cpus.begin(), interrupt.cpus.end());
    all.push_back(interrupt.number);
    const auto isolated = [&](int cpu) { return std::ranges::find(facts.isolated, cpu) != facts.isolated.end(); };
    if (std::ranges::any_of(interrupt.cpus, isolated)) on_isolated.push_back(interrupt.number);
  }
  const std::vector<int> free = cpus_without(facts.cpus, taken);
  const std::string here = free.empty() ? "none" : list_of_cpus(free);
  if (!on_isolated.empty())
    return {feature, false, here + "; isolated ones have some", "isolated CPUs that are interrupted",
            move_interrupts(facts, on_isolated)};
  if (free.empty() && may_set_aside(facts))
    return {feature, false, here, "threads that interrupts put off", move_interrupts(facts, all)};
  return {feature, true, free.empty() ? none_to_spare(facts) : here, "", ""};
}

Capability judge_irqbalance(const TuningFacts& facts) {
  const std::string feature = "interrupts that stay where they are (irqbalance)";
  if (!facts.irqbalance_runs) return {feature, true, "irqbalance does not run", "", ""};
  // It leaves alone what isolcpus= and nohz_full= name.
  if (!facts.isolated.empty() || !facts.tickless.empty())
    return {feature, true, "irqbalance runs, and keeps off isolated CPUs", "", ""};
  if (!may_set_aside(facts)) return {feature, true, "irqbalance runs; " + none_to_spare(facts), "", ""};
  return {feature, false, "irqbalance runs", "interrupts wherever it moves them",
          "systemctl disable --now irqbalance, or IRQBALANCE_BANNED_CPULIST= in /etc/default/irqbalance"};
}

Capability judge_isolation(const TuningFacts& facts) {
  const std::string feature = "CPUs without other programs (isolcpus)";
  if (!facts.isolated.empty()) return {feature, true, list_of_cpus(facts.isolated), "", ""};
  if (!may_set_aside(facts)) return {feature, true, none_to_spare(facts), "", ""};
  return {feature, false, "none", "CPUs shared with whatever else runs",
          fmt::format("boot with isolcpus={0}, start the node with taskset -c {0} and pin = true under [threads]",
                      proposal(facts))};
}

/// The tick and RCU's callbacks matter only where nothing else runs.
Capability judge_quiet_kernel(const TuningFacts& facts) {
  const std::string feature = "isolated CPUs without tick and RCU (nohz_full, rcu_nocbs)";
  if (facts.isolated.empty())
    return {feature, true, may_set_aside(facts) ? "no CPU is isolated" : none_to_spare(facts), "", ""};
  const std::vector<int> ticking =
      cpus_without(facts.isolated, std::set<int>(facts.tickless.begin(), facts.tickless.end()));
  const bool rcu = facts.rcu_offloaded || ticking.empty();  // nohz_full= implies rcu_nocbs=
  if (ticking.empty() && rcu) return {feature, true, list_of_cpus(facts.isolated), "", ""};
  return {feature, false, fmt::format("tick on {}{}", list_of_cpus(ticking), rcu ? "" : ", RCU callbacks on every CPU"),
          "a tick each 1 to 4 ms", fmt::format("boot with nohz_full={0} rcu_nocbs={0}", list_of_cpus(facts.isolated))};
}

Capability judge_buffer(const char* feature, const char* sysctl, std::optional<std::int64_t> bytes,
                        const char* remedy) {
  const std::string name = fmt::format("{} (net.ipv4.{})", feature, sysctl);
  if (!bytes) return {name, true, "unknown", "", ""};
  std::string here = fmt::format("up to {} KiB", *bytes >> 10);
  if (*bytes >= least_buffer_bytes) return {name, true, std::move(here), "", ""};
  return {name, false, std::move(here), "less under way to peers that are far away", remedy};
}

/// The third number of "min default max".
std::optional<std::int64_t> third_number(const std::string& path) {
  std::istringstream words(line_of(path).value_or(""));
  std::int64_t value[3]{};
  if (!(words >> value[0] >> value[1] >> value[2])) return {};
  return value[2];
}

/// A process of this name anywhere we can see.
bool runs(std::string_view name) {
  std::error_code error;
  for (fs::directory_iterator each("/proc", error), end; !error && each != end; each.increment(error)) {
    const std::string directory = each->path().string();
    if (directory.find_first_of("0123456789") != std::string_view("/proc/").size()) continue;
    if (line_of(directory + "/comm") == name) return true;
  }
  return false;
}

/// The numbers of the interrupts of the devices below a class, such as /sys/class/net. A virtio device's are its
/// parent's on the PCI bus.
std::set<int> interrupts_below(const char* directory) {
  std::set<int> numbers;
  std::error_code error;
  for (fs::directory_iterator each(directory, error), end; !error && each != end; each.increment(error)) {
    for (const char* place : {"device/msi_irqs", "device/../msi_irqs", "device/device/msi_irqs"}) {
      std::error_code absent;
      for (fs::directory_iterator irq(each->path() / place, absent), last; !absent && irq != last;
           irq.increment(absent))
        numbers.insert(std::atoi(irq->path().filename().c_str()));
    }
  }
  return numbers;
}

bool has_come(int number) {
  const std::string prefix = fmt::format("{}:", number);
  std::ifstream file("/proc/interrupts");
  for (std::string line; std::getline(file, line);) {
    std::istringstream words(line);
    std::string name;
    words >> name;
    if (name != prefix) continue;
    std::uint64_t sum = 0;
    for (std::uint64_t count = 0; words >> count;) sum += count;
    return sum > 0;
  }
  return false;
}

std::vector<int> allowed_cpus() {
  cpu_set_t allowed;
  CPU_ZERO(&allowed);
  ::sched_getaffinity(0, sizeof allowed, &allowed);
  std::vector<int> cpus;
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (CPU_ISSET(static_cast<std::size_t>(cpu), &allowed)) cpus.push_back(cpu);
  }
  return cpus;
}

}  // namespace

std::vector<int> cpus_of_list(std::string_view list) {
  std::vector<int> cpus;
  const char* at = list.data();
  const char* const end = at + list.size();
  const auto number = [&](int& value) {
    const auto [next, error] = std::from_chars(at, end, value);
    at = next;
    return error == std::errc();
  };
  while (at != end) {
    int first = 0;
    if (!number(first)) return {};
    int last = first;
    if (at != end && *at == '-') {
      ++at;
      if (!number(last)) return {};
    }
    for (int cpu = first; cpu <= last; ++cpu) cpus.push_back(cpu);
    if (at == end) break;
    if (*at != ',') return {};
    ++at;
  }
  return cpus;
}

std::string list_of_cpus(const std::vector<int>& cpus) {
  std::string list;
  for (std::size_t i = 0; i < cpus.size();) {
    std::size_t last = i;
    while (last + 1 < cpus.size() && cpus[last + 1] == cpus[last] + 1) ++last;
    list += fmt::format("{}{}", list.empty() ? "" : ",", cpus[i]);
    if (last > i) list += fmt::format("-{}", cpus[last]);
    i = last + 1;
  }
  return list;
}

TuningFacts read_tuning_facts() {
  TuningFacts facts;
  facts.cpus = allowed_cpus();
  facts.isolated = cpus_of_list(line_of("/sys/devices/system/cpu/isolated").value_or(""));
  facts.tickless = cpus_of_list(line_of("/sys/devices/system/cpu/nohz_full").value_or(""));
  facts.rcu_offloaded = line_of("/proc/cmdline").value_or("").find("rcu_nocbs") != std::string::npos;
  facts.irqbalance_runs = runs("irqbalance");
  std::set<int> numbers = interrupts_below("/sys/class/net");
  numbers.merge(interrupts_below("/sys/class/block"));
  for (const int number : numbers) {
    if (!has_come(number)) continue;
    auto cpus = cpus_of_list(line_of(fmt::format("/proc/irq/{}/effective_affinity_list", number)).value_or(""));
    if (!cpus.empty()) facts.interrupts.push_back({number, std::move(cpus)});
  }
  facts.receive_buffer_bytes = third_number("/proc/sys/net/ipv4/tcp_rmem");
  facts.send_buffer_bytes = third_number("/proc/sys/net/ipv4/tcp_wmem");
  return facts;
}

std::vector<Capability> judge_tuning(const TuningFacts& facts) {
  return {judge_interrupts(facts),
          judge_irqbalance(facts),
          judge_isolation(facts),
          judge_quiet_kernel(facts),
          judge_buffer("receive buffer of a socket", "tcp_rmem", facts.receive_buffer_bytes,
                       "sysctl -w net.ipv4.tcp_rmem='4096 131072 6291456'"),
          judge_buffer("send buffer of a socket", "tcp_wmem", facts.send_buffer_bytes,
                       "sysctl -w net.ipv4.tcp_wmem='4096 16384 4194304'")};
}

}  // namespace lockstep::io
