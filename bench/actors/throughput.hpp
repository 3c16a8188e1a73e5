// SPDX-License-Identifier: Apache-2.0
#pragma once

/// Message → actor → reply without a network and without a disk, in one thread: what a message costs. Prints the table
/// and the goal.

#include "bench/support/table.hpp"

namespace lockstep::bench {

/// Columns as figures_table() of report.hpp.
void measure_throughput(double seconds, Table& figures);

}  // namespace lockstep::bench
