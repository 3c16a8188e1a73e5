// SPDX-License-Identifier: Apache-2.0
#pragma once

/// What a checkpoint's hashing costs: of a state by its size and by the share of its pages that changed; and of the
/// bank, as the share of a message that it takes. Prints tables and the goal.

#include "bench/support/results.hpp"
#include "bench/support/table.hpp"

namespace lockstep::bench {

/// Columns as figures_table() of report.hpp.
void measure_checkpoints(double seconds, const Results& results, Table& figures);

}  // namespace lockstep::bench
