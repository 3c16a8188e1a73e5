// SPDX-License-Identifier: Apache-2.0
#pragma once

/// The open-loop comparison: the runtimes in turn at rising rates, and flat out, for as long as it may take; prints the
/// table and the goal.

#include "bench/support/results.hpp"
#include "bench/support/table.hpp"

namespace lockstep::bench {

/// Columns as figures_table() of report.hpp.
void compare_latencies(double seconds, const Results& results, Table& figures);

}  // namespace lockstep::bench
