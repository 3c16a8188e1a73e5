// SPDX-License-Identifier: Apache-2.0
#pragma once

/// How much of a journal is worth keeping behind the snapshots that need it: for replay, for comparisons, for those who
/// ask what happened. Blocking calls; one thread.

#include <cstdint>
#include <string>

#include "base/error.hpp"
#include "journal/disk.hpp"

namespace lockstep {

struct Retention {
  std::uint64_t max_bytes = 0;  ///< of segments; 0: no more than the snapshots need
  std::int64_t max_age_ns = 0;  ///< of the newest batch in a segment, by its stamp; 0: of any age
};

/// The first batch to keep of a journal: segments that hold only older ones are beyond what `retention` allows. 0 when
/// none is. Only whole segments go, so what stays may be more than max_bytes by one.
[[nodiscard]] Result<std::uint64_t> first_batch_to_keep(Disk& disk, const std::string& directory,
                                                        const Retention& retention, std::int64_t now_ns);

}  // namespace lockstep
