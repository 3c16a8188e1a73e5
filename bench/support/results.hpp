// SPDX-License-Identifier: Apache-2.0
#pragma once

/// The files a bench leaves in its output directory, beside what it prints:
///
///     NAME.csv            its figures, for programs (RFC 4180)
///     NAME.SERIES.hgrm    a distribution, for HdrHistogram's plotter
///     NAME.SUBJECT.gp     a plot with its data, for gnuplot; `./dev bench` makes NAME.SUBJECT.svg of it
///
/// Without a directory nothing is written. A file that cannot be written ends the program with status 1: figures that
/// were asked for and are not there must not look like success. One thread.

#include <string>

#include "base/histogram.hpp"
#include "bench/support/plot.hpp"
#include "bench/support/table.hpp"

namespace lockstep::bench {

class Results {
 public:
  /// Makes `directory` when it is not there; empty for none. `name` is the bench's.
  Results(std::string directory, std::string name);

  void figures(const Table& table) const;
  /// Values in nanoseconds; the file has microseconds. `series` may hold blanks and punctuation: the file's name has
  /// dashes for them.
  void distribution(const std::string& series, const Histogram& values_ns) const;
  /// Without a point, as after a short run, there is a line on stderr instead.
  void plot(const std::string& subject, const Plot& plot) const;

 private:
  void write(const std::string& subject, const char* ending, const std::string& text) const;

  std::string directory_;
  std::string name_;
};

}  // namespace lockstep::bench
