// SPDX-License-Identifier: Apache-2.0
#include "runtime/io/host_report.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <linux/capability.h>
#include <sched.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/sysmacros.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <fstream>
#include <utility>

#include "base/descriptor.hpp"
#include "base/system_error.hpp"
#include "runtime/io/host_tuning.hpp"
#include "runtime/io/proc_files.hpp"

namespace lockstep::io {
namespace {

namespace fs = std::filesystem;

Capability row(std::string feature, bool good, std::string here, std::string instead = "", std::string remedy = "") {
  if (good) return {std::move(feature), true, std::move(here), "", ""};
  return {std::move(feature), false, std::move(here), std::move(instead), std::move(remedy)};
}

/// The word in brackets: "always [madvise] never" -> "madvise".
std::string chosen(std::string_view choices) {
  const std::size_t open = choices.find('['), close = choices.find(']');
  if (close == std::string_view::npos || open >= close) return std::string(choices);
  return std::string(choices.substr(open + 1, close - open - 1));
}

void add_kernel(std::vector<Capability>& rows) {
  utsname name{};
  ::uname(&name);
  int major = 0, minor = 0;
  const bool parsed = std::sscanf(name.release, "%d.%d", &major, &minor) == 2;  // NOLINT(cert-err34-c)
  rows.push_back(row("kernel 6.1 or newer", parsed && (major > 6 || (major == 6 && minor >= 1)), name.release,
                     "whatever the rows about io_uring say", "use Linux 6.1 or newer"));
  const auto disabled = number_in("/proc/sys/kernel/io_uring_disabled");
  rows.push_back(row("sysctl kernel.io_uring_disabled", disabled.value_or(0) == 0,
                     disabled ? std::to_string(*disabled) : "absent", "epoll", "sysctl -w kernel.io_uring_disabled=0"));
  const auto seccomp = status_field("Seccomp").value_or(0);
  rows.push_back({"seccomp filter", true, seccomp == 2 ? "yes (fine while io_uring works)" : "none", "", ""});
}

bool has_capability(unsigned number) {
  const auto text = field_in("/proc/self/status", "CapEff");
  return text && ((std::strtoull(text->c_str(), nullptr, 16) >> number) & 1) != 0;
}

void add_limits(std::vector<Capability>& rows) {
  rlimit limit{};
  ::getrlimit(RLIMIT_MEMLOCK, &limit);
  const std::string bytes = limit.rlim_cur == RLIM_INFINITY ? "unlimited" : fmt::format("{} KiB", limit.rlim_cur >> 10);
  rows.push_back(
      {"lockable memory", true, bytes + (has_capability(CAP_IPC_LOCK) ? ", not binding: CAP_IPC_LOCK" : ""), "", ""});
  ::getrlimit(RLIMIT_NOFILE, &limit);
  rows.push_back(row("descriptors for 4096 connections", limit.rlim_cur >= 4096 + 256, std::to_string(limit.rlim_cur),
                     "as many connections as fit", "ulimit -n 8192, or LimitNOFILE= of the service"));
}

void add_memory(std::vector<Capability>& rows) {
  const std::string free = field_in("/proc/meminfo", "HugePages_Free").value_or("0");
  rows.push_back(row("free huge pages (2 MiB)", free != "0", free, "transparent huge pages, then plain pages",
                     "sysctl -w vm.nr_hugepages=N"));
  const std::string choice = chosen(line_of("/sys/kernel/mm/transparent_hugepage/enabled").value_or("absent"));
  rows.push_back(row("transparent huge pages", choice == "always" || choice == "madvise", choice, "plain pages",
                     "echo madvise > /sys/kernel/mm/transparent_hugepage/enabled"));
}

void add_processors(std::vector<Capability>& rows) {
  cpu_set_t allowed;
  CPU_ZERO(&allowed);
  ::sched_getaffinity(0, sizeof allowed, &allowed);
  const int count = CPU_COUNT(&allowed);
  rows.push_back(row("CPUs this process may use", count >= 2,
                     fmt::format("{} of {}", count, ::sysconf(_SC_NPROCESSORS_ONLN)), "all roles on one thread",
                     "give it two CPUs or more"));
  const std::string clock = line_of("/sys/devices/system/clocksource/clocksource0/current_clocksource").value_or("?");
  rows.push_back(row("clock source read without a system call",
                     clock == "tsc" || clock == "kvm-clock" || clock == "arch_sys_counter", clock,
                     "a system call per reading", "choose tsc in /sys/devices/system/clocksource"));
}

void add_network(std::vector<Capability>& rows) {
  const auto backlog = number_in("/proc/sys/net/core/somaxconn").value_or(0);
  rows.push_back(row("waiting connections (net.core.somaxconn)", backlog >= 1024, std::to_string(backlog),
                     "a shorter queue of peers not accepted yet", "sysctl -w net.core.somaxconn=4096"));
}

fs::path nearest_existing(const std::string& directory) {
  std::error_code ignored;
  fs::path path = fs::absolute(directory.empty() ? "." : directory, ignored);
  while (!fs::exists(path, ignored) && path.has_relative_path()) path = path.parent_path();
  return path;
}

/// Whether a file made in `directory` can be opened past the page cache; the errno when not.
int direct_io_error(const fs::path& directory) {
  const Descriptor file(::open(directory.c_str(), O_TMPFILE | O_RDWR | O_DIRECT | O_CLOEXEC, 0600));
  return file.is_open() ? 0 : errno;
}

void add_direct_io(std::vector<Capability>& rows, const fs::path& directory) {
  const int error = direct_io_error(directory);
  rows.push_back(row("writes past the page cache (O_DIRECT)", error == 0, error == 0 ? "yes" : errno_text(error),
                     "writes through the page cache, with fdatasync", "put the data directory on ext4 or xfs"));
  struct statfs space{};
  if (::statfs(directory.c_str(), &space) != 0) return;
  const std::uint64_t free_mib = (std::uint64_t{space.f_bavail} * static_cast<std::uint64_t>(space.f_bsize)) >> 20;
  rows.push_back(row("free space for the journal", free_mib >= 1024, fmt::format("{} MiB", free_mib),
                     "the node stops when it is used up", "free at least 1 GiB"));
}

/// /sys/... of the whole disk that holds `directory`, or nothing where there is none (overlay, tmpfs, network).
fs::path disk_of(const fs::path& directory) {
  struct stat status{};
  if (::stat(directory.c_str(), &status) != 0) return {};
  std::error_code error;
  fs::path device =
      fs::canonical(fmt::format("/sys/dev/block/{}:{}", major(status.st_dev), minor(status.st_dev)), error);
  if (error) return {};
  return fs::exists(device / "queue", error) ? device : device.parent_path();
}

/// CPUs that take the disk's interrupts: a thread that spins on one of them delays the disk.
std::string interrupt_cpus(const fs::path& disk) {
  std::error_code error;
  // A virtio disk's interrupts bear the name of its virtio device, an NVMe disk's the name of its controller.
  const std::string virtio = fs::canonical(disk / "device", error).filename().string();
  const std::string name = disk.filename().string();
  const std::string controller = name.starts_with("nvme") ? name.substr(0, name.find('n', 4)) : virtio;
  std::string cpus;
  std::ifstream interrupts("/proc/interrupts");
  for (std::string line; std::getline(interrupts, line);) {
    const bool config = line.find("config") != std::string::npos;
    if (controller.empty() || line.find(controller) == std::string::npos || config) continue;
    const std::string number = line.substr(line.find_first_not_of(' '), line.find(':') - line.find_first_not_of(' '));
    const auto list = line_of("/proc/irq/" + number + "/effective_affinity_list");
    if (list) cpus += (cpus.empty() ? "" : ",") + *list;
  }
  return cpus;
}

void add_disk(std::vector<Capability>& rows, const fs::path& directory) {
  add_direct_io(rows, directory);
  const fs::path disk = disk_of(directory);
  if (disk.empty()) {
    rows.push_back({"disk of " + directory.string(), true, "not a block device of this host", "", ""});
    return;
  }
  const std::string cache = line_of((disk / "queue/write_cache").string()).value_or("?");
  rows.push_back({"disk write cache (" + disk.filename().string() + ")", true,
                  cache == "write back" ? "write back: each sync is a flush" : cache, "", ""});
  const std::string cpus = interrupt_cpus(disk);
  if (!cpus.empty())
    rows.push_back({"CPUs of the disk's interrupts", true, cpus + ": pin no spinning thread there", "", ""});
}

}  // namespace

std::vector<Capability> probe_host(const std::string& data_directory) {
  std::vector<Capability> rows;
  add_kernel(rows);
  add_limits(rows);
  add_memory(rows);
  add_processors(rows);
  add_network(rows);
  const fs::path there = nearest_existing(data_directory);
  std::error_code ignored;
  if (!data_directory.empty() && !fs::exists(data_directory, ignored))
    rows.push_back(row("data directory", false, "not there",
                       "the disk of " + there.string() + ", where serve would make it",
                       data_directory + " does not exist; name the one that is meant, or serve it"));
  add_disk(rows, there);
  for (Capability& tuning : judge_tuning(read_tuning_facts())) rows.push_back(std::move(tuning));
  return rows;
}

}  // namespace lockstep::io
