// SPDX-License-Identifier: Apache-2.0
#pragma once

/// XXH3-128 for long inputs, compiled for wider vectors than the program's own: the same values, up to twice as fast
/// (pages, batches). digest.cpp picks one by what the CPU has. Internal to base; any thread.
///
/// digest_bulk.cpp is compiled once a variant, with that variant's instructions. It includes nothing that has inline
/// functions shared with the rest of the program, or the linker could keep the copy that not every CPU can run.

#include <cstddef>
#include <cstdint>

namespace lockstep {

struct BulkHash {
  std::uint64_t low;
  std::uint64_t high;
};
using BulkHashFunction = BulkHash (*)(const void* bytes, std::size_t size, std::uint64_t seed);

#if defined(__x86_64__)
BulkHash bulk_hash_avx2(const void* bytes, std::size_t size, std::uint64_t seed);
BulkHash bulk_hash_avx512(const void* bytes, std::size_t size, std::uint64_t seed);
#endif

}  // namespace lockstep
