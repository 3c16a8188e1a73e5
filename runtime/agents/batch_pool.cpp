// SPDX-License-Identifier: Apache-2.0
#include "runtime/agents/batch_pool.hpp"

#include <algorithm>
#include <bit>
#include <new>
#include <utility>

#include "base/assert.hpp"

namespace lockstep {
namespace {

Region take_memory(const BatchPool::Options& options) {
  auto memory = Region::allocate(std::size_t{options.slabs} * options.max_batch_bytes, "batch pool");
  if (!memory) throw std::bad_alloc();
  return std::move(*memory);
}

}  // namespace

BatchPool::BatchPool(const Options& options)
    : options_(options),
      mask_(options.slabs - 1),
      memory_(take_memory(options)),
      headers_(options.slabs),
      flags_(options.slabs),
      gate_(options.last_index),
      sealed_(options.last_index),
      written_(options.last_index),
      committed_(options.last_index),
      executed_(options.executors) {
  LOCKSTEP_ASSERT(std::has_single_bit(options.slabs) && options.slabs >= 2, "slabs must be a power of two from 2");
  LOCKSTEP_ASSERT(options.max_batch_bytes != 0 && options.max_batch_bytes % slab_alignment == 0,
                  "max_batch_bytes must be a multiple of 4096");
  LOCKSTEP_ASSERT(options.executors != 0, "a pool needs an executor");
  for (Cursor& cursor : executed_) cursor.publish(options.last_index);
}

bool BatchPool::can_open(std::uint64_t index) {
  if (index - gate_ <= options_.slabs) return true;
  gate_ = std::min(written_.read(), executed_by_all());
  return index - gate_ <= options_.slabs;
}

BatchView BatchPool::view(std::uint64_t index) const {
  const BatchHeader& header = headers_[index & mask_];
  LOCKSTEP_ASSERT(header.index == index, "a batch was read after its slab was given to another");
  return {&header, {slab(index), header.payload_bytes}};
}

std::span<const std::byte> BatchPool::padded_payload(std::uint64_t index) const {
  const std::size_t bytes = headers_[index & mask_].payload_bytes;
  return {slab(index), (bytes + slab_alignment - 1) & ~(slab_alignment - 1)};
}

std::uint64_t BatchPool::executed_by_all() const {
  std::uint64_t slowest = UINT64_MAX;
  for (const Cursor& cursor : executed_) slowest = std::min(slowest, cursor.read());
  return slowest;
}

}  // namespace lockstep
