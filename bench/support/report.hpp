// SPDX-License-Identifier: Apache-2.0
#pragma once

/// How a series is shown: on what machine it was measured, and its figures by regime.

#include <string>

#include "bench/support/rounds.hpp"
#include "bench/support/table.hpp"

namespace lockstep::bench {

/// CPU model, CPUs, kernel, compiler, counter step, hiccups of the next 0.2 s: what a figure needs beside it.
[[nodiscard]] std::string describe_machine();

/// What was seen of the regimes: how many probes fell in each and their median round trip.
[[nodiscard]] std::string describe_regimes(const Series& series);

/// A row a case: median, best and number of samples in each regime that was met, and how many samples were dropped.
[[nodiscard]] Table table_of(const Series& series, Better better);

/// A row a case and regime, for programs. Columns: series, case, regime, unit, median, best, samples, dropped.
[[nodiscard]] Table figures_table();
void add_figures(Table& figures, const Series& series, Better better, const std::string& series_name,
                 const std::string& unit);

}  // namespace lockstep::bench
