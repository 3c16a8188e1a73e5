// SPDX-License-Identifier: Apache-2.0
#include "runtime/io/receive_buffers.hpp"

#include <sys/mman.h>

#include <cerrno>

#include <fmt/format.h>

#include "base/assert.hpp"
#include "base/system_error.hpp"

namespace lockstep::io {
namespace {

constexpr std::size_t huge_page_bytes = std::size_t{2} << 20;

std::size_t round_up(std::size_t bytes, std::size_t unit) {
  return (bytes + unit - 1) / unit * unit;
}

}  // namespace

ReceiveBuffers::~ReceiveBuffers() {
  if (memory_ != nullptr) ::munmap(memory_, mapped_bytes_);
}

Result<void> ReceiveBuffers::map(std::uint32_t count, std::uint32_t bytes) {
  LOCKSTEP_ASSERT(memory_ == nullptr, "receive buffers are mapped once");
  count_ = count;
  bytes_ = bytes;
  links_.resize(count);
  mapped_bytes_ = round_up(std::size_t{count} * bytes, huge_page_bytes);
  constexpr int access = PROT_READ | PROT_WRITE;
  constexpr int kind = MAP_PRIVATE | MAP_ANONYMOUS;
  void* memory = ::mmap(nullptr, mapped_bytes_, access, kind | MAP_HUGETLB, -1, 0);
  if (memory == MAP_FAILED) {
    memory = ::mmap(nullptr, mapped_bytes_, access, kind, -1, 0);
    if (memory == MAP_FAILED)
      return system_failure("map", fmt::format("{} bytes of receive buffers", mapped_bytes_), errno);
    ::madvise(memory, mapped_bytes_, MADV_HUGEPAGE);
  }
  memory_ = static_cast<std::byte*>(memory);
  return {};
}

void ReceiveBuffers::hold(HeldBuffers& chain, std::span<const std::byte> data) {
  const std::uint32_t index = index_of(data);
  links_[index] = {static_cast<std::uint32_t>(data.size()), HeldBuffers::none};
  if (chain.empty()) {
    chain.first = index;
  } else {
    links_[chain.last].next = index;
  }
  chain.last = index;
}

std::span<const std::byte> ReceiveBuffers::unhold(HeldBuffers& chain) {
  const std::uint32_t index = chain.first;
  chain.first = links_[index].next;
  if (chain.empty()) chain.last = HeldBuffers::none;
  return buffer(index).first(links_[index].length);
}

}  // namespace lockstep::io
