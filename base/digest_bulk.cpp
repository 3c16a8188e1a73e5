// SPDX-License-Identifier: Apache-2.0
#include "base/digest_bulk.hpp"

#define XXH_INLINE_ALL
#include <xxhash.h>

namespace lockstep {

/// LOCKSTEP_BULK_HASH is the variant's name, from the build.
BulkHash LOCKSTEP_BULK_HASH(const void* bytes, std::size_t size, std::uint64_t seed) {
  const XXH128_hash_t hash =
      seed == 0 ? XXH3_128bits(bytes, size) : XXH3_128bits_withSeed(bytes, size, seed);  // no secret to derive for 0
  return {hash.low64, hash.high64};
}

}  // namespace lockstep
