// SPDX-License-Identifier: Apache-2.0
#pragma once

/// What an operator can do so that a node's threads are left alone: the rows of `lockstep doctor` about interrupts,
/// irqbalance, isolated and tickless CPUs, and socket buffers. Reading is apart from judging, so that any host can be
/// judged in a test. It only reads. Cold path. Any thread.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/io/io_caps.hpp"

namespace lockstep::io {

/// An interrupt of a device that can be moved to other CPUs.
struct DeviceInterrupt {
  int number = 0;  ///< /proc/irq/NUMBER
  std::vector<int> cpus;
};

struct TuningFacts {
  std::vector<int> cpus;      ///< that this process may use
  std::vector<int> isolated;  ///< isolcpus=
  std::vector<int> tickless;  ///< nohz_full=
  bool rcu_offloaded = false;
  bool irqbalance_runs = false;
  std::vector<DeviceInterrupt> interrupts;           ///< of disks and network interfaces, those that have come at all
  std::optional<std::int64_t> receive_buffer_bytes;  ///< the most that net.ipv4.tcp_rmem lets a socket grow to
  std::optional<std::int64_t> send_buffer_bytes;     ///< net.ipv4.tcp_wmem
};

[[nodiscard]] TuningFacts read_tuning_facts();
[[nodiscard]] std::vector<Capability> judge_tuning(const TuningFacts& facts);

/// "0-2,5" -> 0, 1, 2, 5; what is no such list is empty.
[[nodiscard]] std::vector<int> cpus_of_list(std::string_view list);
/// 0, 1, 2, 5 -> "0-2,5".
[[nodiscard]] std::string list_of_cpus(const std::vector<int>& cpus);

}  // namespace lockstep::io
