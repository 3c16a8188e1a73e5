// SPDX-License-Identifier: Apache-2.0
#include "runtime/breadcrumbs.hpp"

#include <algorithm>
#include <cstring>
#include <new>

namespace lockstep {
namespace {

constexpr std::uint64_t breadcrumbs_magic = 0x4d555243'4b434f4c;  // the bytes "LOCKCRUM"
constexpr std::uint32_t breadcrumbs_version = 1;

}  // namespace

struct Breadcrumbs::File {
  std::uint64_t magic = breadcrumbs_magic;
  std::uint32_t version = breadcrumbs_version;
  std::uint32_t zero = 0;
  Deaths deaths[7] = {};
  Breadcrumb slots[executors_limit] = {};
};

Result<Breadcrumbs> Breadcrumbs::open(Disk& disk, const std::string& directory) {
  static_assert(sizeof(File) == 8320 && offsetof(File, deaths) == 16 && offsetof(File, slots) == 128);
  auto memory = disk.map_shared(directory + "/" + file_name, sizeof(File));
  if (!memory) return std::unexpected(memory.error());
  Breadcrumbs breadcrumbs(std::move(*memory));
  breadcrumbs.make_sense();
  return breadcrumbs;
}

Result<Breadcrumbs> Breadcrumbs::look(Disk& disk, const std::string& directory) {
  Breadcrumbs breadcrumbs(std::shared_ptr<std::byte[]>(
      new (std::align_val_t{alignof(File)}) std::byte[sizeof(File)]{},
      [](std::byte* memory) { operator delete[](memory, std::align_val_t{alignof(File)}); }));
  const auto names = disk.list(directory);
  if (!names) return std::unexpected(names.error());
  if (std::ranges::find(*names, file_name) != names->end()) {
    const auto file = disk.open(directory + "/" + file_name, OpenMode::read);
    if (!file) return std::unexpected(file.error());
    const auto read = disk.read(*file, 0, {breadcrumbs.memory_.get(), sizeof(File)});
    disk.close(*file);
    if (!read) return std::unexpected(read.error());
  }
  breadcrumbs.make_sense();
  return breadcrumbs;
}

void Breadcrumbs::make_sense() {
  if (file().magic != breadcrumbs_magic || file().version != breadcrumbs_version) new (memory_.get()) File;
  count_deaths();
}

Breadcrumbs::File& Breadcrumbs::file() const {
  return *std::launder(reinterpret_cast<File*>(memory_.get()));
}

Breadcrumb* Breadcrumbs::slots() {
  return file().slots;
}

/// Executors that died with another's message in the same process are counted too; only one that dies again with the
/// same sequence number comes to two. The table has the latest deaths first and forgets the earliest.
void Breadcrumbs::count_deaths() {
  for (Breadcrumb& slot : file().slots) {
    const std::uint64_t seq = slot.seq.exchange(0, std::memory_order_relaxed);
    if (seq == 0) continue;
    auto* entry = std::ranges::find(file().deaths, seq, &Deaths::seq);
    if (entry == std::end(file().deaths)) *--entry = {seq, 0};
    ++entry->count;
    std::rotate(file().deaths, entry, entry + 1);
  }
}

std::optional<Breadcrumbs::Deaths> Breadcrumbs::poison(std::span<const std::uint64_t> skipped) const {
  std::optional<Deaths> lowest;
  for (const Deaths& deaths : file().deaths) {
    if (deaths.count < deaths_before_halt || std::ranges::binary_search(skipped, deaths.seq)) continue;
    if (!lowest || deaths.seq < lowest->seq) lowest = deaths;
  }
  return lowest;
}

void Breadcrumbs::forget() {
  std::ranges::fill(file().deaths, Deaths{});
}

}  // namespace lockstep
