// SPDX-License-Identifier: Apache-2.0
#pragma once

/// What a load run is told as: a few lines for people, one JSON object for programs. Pure functions.

#include <string>

#include "runtime/load/load.hpp"

namespace lockstep {

/// Rate, percentiles from p50 to p99.99 in microseconds, and what went wrong; several lines.
[[nodiscard]] std::string load_text(const LoadOptions& options, const LoadResult& result);

/// The same as one JSON object; latencies in nanoseconds.
[[nodiscard]] std::string load_json(const LoadOptions& options, const LoadResult& result);

}  // namespace lockstep
