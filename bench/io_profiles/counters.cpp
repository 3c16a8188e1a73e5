// SPDX-License-Identifier: Apache-2.0
#include "bench/io_profiles/counters.hpp"

#include <fmt/format.h>
#include <linux/perf_event.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <utility>

namespace lockstep::bench {
namespace {

constexpr const char* tracefs = "/sys/kernel/tracing";

void mount_tracefs_privately() {
  std::error_code ignored;
  if (std::filesystem::exists(fmt::format("{}/events", tracefs), ignored)) return;
  if (::unshare(CLONE_NEWNS) != 0 || ::mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0) return;
  static_cast<void>(::mount("tracefs", tracefs, "tracefs", 0, nullptr));  // without it the events are not found
}

/// perf's number of a tracepoint; nothing when there is no such, or tracefs cannot be read.
std::optional<std::uint64_t> tracepoint(const char* name) {
  std::ifstream file(fmt::format("{}/events/{}/id", tracefs, name));
  std::uint64_t id = 0;
  if (!(file >> id)) return {};
  return id;
}

/// Disabled, with the threads that `task` starts later. Closed when the kernel refuses.
Descriptor open_event(std::uint32_t type, std::uint64_t config, const std::string& filter, pid_t task) {
  perf_event_attr attributes{};
  attributes.size = sizeof attributes;
  attributes.type = type;
  attributes.config = config;
  attributes.disabled = 1;
  attributes.inherit = 1;
  Descriptor event(static_cast<int>(
      ::syscall(SYS_perf_event_open, &attributes, task, /*cpu=*/-1, /*group=*/-1, PERF_FLAG_FD_CLOEXEC)));
  if (event.is_open() && !filter.empty() && ::ioctl(event.get(), PERF_EVENT_IOC_SET_FILTER, filter.c_str()) != 0)
    event.reset();
  return event;
}

constexpr std::uint64_t l1d_load_misses =
    PERF_COUNT_HW_CACHE_L1D | (PERF_COUNT_HW_CACHE_OP_READ << 8) | (PERF_COUNT_HW_CACHE_RESULT_MISS << 16);

}  // namespace

std::vector<pid_t> threads_of(pid_t process) {
  std::vector<pid_t> threads;
  std::error_code ignored;
  for (const auto& entry : std::filesystem::directory_iterator(fmt::format("/proc/{}/task", process), ignored))
    threads.push_back(std::atoi(entry.path().filename().c_str()));
  return threads;
}

EventCounters::EventCounters() {
  mount_tracefs_privately();
  const auto usable = [](std::uint32_t type, std::optional<std::uint64_t> config, std::string filter) {
    std::optional<Event> event;
    if (config && open_event(type, *config, filter, /*task=*/0).is_open()) event = {type, *config, std::move(filter)};
    return event;
  };
  system_calls_.event = usable(PERF_TYPE_TRACEPOINT, tracepoint("raw_syscalls/sys_enter"), "");
  ipis_.event = usable(PERF_TYPE_TRACEPOINT, tracepoint("ipi/ipi_send_cpu"), "");
  // A completion is handed to its thread by task_work_add(), which interrupts the CPU that the thread runs on.
  io_uring_ipis_.event =
      usable(PERF_TYPE_TRACEPOINT, tracepoint("ipi/ipi_send_cpu"), "callsite.function == task_work_add");
  l1d_misses_.event = usable(PERF_TYPE_HW_CACHE, l1d_load_misses, "");
}

std::string EventCounters::describe() const {
  return fmt::format(
      "system calls: {}\nIPIs: {}\nRES, CAL: /proc/interrupts, of the whole machine\nL1d misses: {}\n",
      system_calls_.event ? "raw_syscalls:sys_enter, the server's threads"
                          : "as the server counts them (no tracepoints for this user)",
      !ipis_.event ? "n/a (no tracepoint ipi:ipi_send_cpu for this user: run it as root, on Linux 6.4 or newer)"
      : io_uring_ipis_.event ? "ipi:ipi_send_cpu out of the server's and the client's threads; io_uring's are those "
                               "that task_work_add sends"
                             : "ipi:ipi_send_cpu out of the server's and the client's threads (this kernel does not "
                               "tell io_uring's apart)",
      l1d_misses_.event ? "the CPU's counter, the server's threads" : "n/a (no counters here)");
}

void EventCounters::start(std::span<const pid_t> server, std::span<const pid_t> client) {
  std::vector<pid_t> both(server.begin(), server.end());
  both.insert(both.end(), client.begin(), client.end());
  system_calls_.open(server);
  ipis_.open(both);
  io_uring_ipis_.open(both);
  l1d_misses_.open(server);
}

EventCounts EventCounters::stop() {
  return {system_calls_.close(), ipis_.close(), io_uring_ipis_.close(), l1d_misses_.close()};
}

void EventCounters::Counter::open(std::span<const pid_t> tasks) {
  complete = event.has_value();
  if (!event) return;
  for (const pid_t task : tasks) {
    Descriptor opened = open_event(event->type, event->config, event->filter, task);
    if (!opened.is_open() || ::ioctl(opened.get(), PERF_EVENT_IOC_ENABLE, 0) != 0) complete = false;
    threads.push_back(std::move(opened));
  }
}

std::optional<std::uint64_t> EventCounters::Counter::close() {
  std::uint64_t sum = 0;
  for (const Descriptor& each : threads) {
    std::uint64_t count = 0;
    if (::read(each.get(), &count, sizeof count) != sizeof count) complete = false;
    sum += count;
  }
  threads.clear();
  if (!complete) return {};
  return sum;
}

MachineTotals read_machine_totals() {
  MachineTotals totals;
  std::ifstream interrupts("/proc/interrupts");
  for (std::string line; std::getline(interrupts, line);) {
    std::istringstream words(line);
    std::string name;
    words >> name;
    if (name != "RES:" && name != "CAL:") continue;
    std::uint64_t sum = 0;
    for (std::uint64_t count = 0; words >> count;) sum += count;
    (name == "RES:" ? totals.reschedule_interrupts : totals.call_interrupts) = sum;
  }
  std::ifstream stat("/proc/stat");
  std::string name;
  // proc(5): user nice system idle iowait irq softirq steal
  std::uint64_t ticks[8]{};
  stat >> name;
  for (std::uint64_t& each : ticks) stat >> each;
  const double second = static_cast<double>(::sysconf(_SC_CLK_TCK));
  const std::uint64_t busy = ticks[0] + ticks[1] + ticks[2] + ticks[5] + ticks[6];
  totals.busy_seconds = static_cast<double>(busy) / second;
  totals.stolen_seconds = static_cast<double>(ticks[7]) / second;
  totals.all_seconds = static_cast<double>(busy + ticks[7] + ticks[3] + ticks[4]) / second;
  return totals;
}

}  // namespace lockstep::bench
