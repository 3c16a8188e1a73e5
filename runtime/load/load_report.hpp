// SPDX-License-Identifier: Apache-2.0
#pragma once

/// What a load run is told as: a few lines for people, one JSON object for programs, and a progress line while it runs.

#include <string>

#include "runtime/load/load.hpp"

namespace lockstep {

/// Rate, percentiles from p50 to p99.99 in microseconds, and what went wrong; several lines.
[[nodiscard]] std::string load_text(const LoadOptions& options, const LoadResult& result);

/// The same as one JSON object; latencies in nanoseconds.
[[nodiscard]] std::string load_json(const LoadOptions& options, const LoadResult& result);

/// A line on stderr that rewrites itself; nothing when stderr is no terminal.
[[nodiscard]] std::function<void(const LoadProgress&)> load_progress_line();
/// Ends that line.
void end_load_progress_line();

}  // namespace lockstep
