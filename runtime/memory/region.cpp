// SPDX-License-Identifier: Apache-2.0
#include "runtime/memory/region.hpp"

#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <fstream>
#include <string>

#include "base/log.hpp"

namespace lockstep {
namespace {

constexpr std::size_t huge_page_bytes = std::size_t{2} << 20;

std::size_t round_up(std::size_t bytes, std::size_t unit) {
  return (bytes + unit - 1) / unit * unit;
}

void* map(std::size_t bytes, int flags) {
  return ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | flags, -1, 0);
}

/// Plain pages that start on a 2 MiB boundary, as transparent huge pages need; MAP_FAILED if there are none.
void* map_aligned(std::size_t bytes) {
  void* const memory = map(bytes + huge_page_bytes, 0);
  if (memory == MAP_FAILED) return memory;
  std::byte* const begin = static_cast<std::byte*>(memory);
  const auto address = reinterpret_cast<std::uintptr_t>(begin);
  const std::size_t before = round_up(address, huge_page_bytes) - address;
  if (before != 0) ::munmap(begin, before);
  ::munmap(begin + before + bytes, huge_page_bytes - before);
  return begin + before;
}

/// madvise(2) succeeds even where the administrator has switched transparent huge pages off.
bool kernel_gives_transparent_pages() {
  std::ifstream file("/sys/kernel/mm/transparent_hugepage/enabled");
  std::string modes;
  return std::getline(file, modes) && modes.find("[never]") == std::string::npos;
}

}  // namespace

Result<Region> Region::allocate(std::size_t bytes, std::string_view purpose) {
  if (bytes >= huge_page_bytes) {
    const std::size_t whole = round_up(bytes, huge_page_bytes);
    if (void* const memory = map(whole, MAP_HUGETLB); memory != MAP_FAILED) {
      log(LogLevel::info, "memory", "{}: {} MiB on huge pages", purpose, whole >> 20);
      return Region(memory, whole, PageKind::huge);
    }
    void* const memory = map_aligned(whole);
    if (memory == MAP_FAILED) {
      return fail(ErrorCode::full,
                  fmt::format("mmap of {} MiB for {}: {}; give the node more memory or lower its limits", whole >> 20,
                              purpose, strerrordesc_np(errno)));
    }
    const bool huge = kernel_gives_transparent_pages() && ::madvise(memory, whole, MADV_HUGEPAGE) == 0;
    log(LogLevel::info, "memory", "{}: {} MiB on {} pages (vm.nr_hugepages has none to spare)", purpose, whole >> 20,
        huge ? "transparent huge" : "plain");
    return Region(memory, whole, huge ? PageKind::transparent : PageKind::plain);
  }
  const std::size_t whole = round_up(bytes, static_cast<std::size_t>(::sysconf(_SC_PAGESIZE)));
  void* const memory = map(whole, 0);
  if (memory == MAP_FAILED) {
    return fail(ErrorCode::full, fmt::format("mmap of {} KiB for {}: {}; give the node more memory or lower its limits",
                                             whole >> 10, purpose, strerrordesc_np(errno)));
  }
  return Region(memory, whole, PageKind::plain);
}

Result<Region> Region::reserve(std::size_t bytes, std::string_view purpose) {
  const std::size_t whole = round_up(bytes, static_cast<std::size_t>(::sysconf(_SC_PAGESIZE)));
  void* const memory = map(whole, MAP_NORESERVE);
  if (memory == MAP_FAILED) {
    return fail(ErrorCode::full,
                fmt::format("mmap of {} MiB of address space for {}: {}; lower the shards' memory in genesis, or raise "
                            "`ulimit -v`, or set vm.overcommit_memory to 0 or 1",
                            whole >> 20, purpose, strerrordesc_np(errno)));
  }
  ::madvise(memory, whole, MADV_NOHUGEPAGE);
  return Region(memory, whole, PageKind::plain);
}

Region::~Region() {
  if (data_ != nullptr) ::munmap(data_, size_);
}

}  // namespace lockstep
