// SPDX-License-Identifier: Apache-2.0
#pragma once

/// How lockstep's rate grows: with the transactions in flight, and with executors; each with the universal scalability
/// law fitted and plotted.

#include "bench/support/results.hpp"
#include "bench/support/table.hpp"

namespace lockstep::bench {

/// Columns as figures_table() of report.hpp.
void measure_scaling(double seconds, const Results& results, Table& figures);

}  // namespace lockstep::bench
