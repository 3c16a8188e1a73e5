// SPDX-License-Identifier: Apache-2.0
#pragma once

/// A line plot, as a gnuplot script that holds its own data, so that a figure can be drawn again with other limits or
/// labels without measuring again.

#include <string>
#include <utility>
#include <vector>

#include "base/histogram.hpp"

namespace lockstep::bench {

struct PlotLine {
  std::string name;
  std::vector<std::pair<double, double>> points;
  bool fitted = false;  ///< drawn without marks: a model's line among measured points
};

struct Plot {
  std::string title;
  std::string x_label;
  std::string y_label;
  bool logarithmic_x = false;
  bool logarithmic_y = false;
  std::vector<PlotLine> lines;
  /// x is 1 / (1 - percentile), labelled as percentiles; set by percentile_plot().
  bool percentiles = false;
};

/// Whether there is a point to draw; gnuplot fails where there is none.
[[nodiscard]] bool has_points(const Plot& plot);

/// Writes an SVG to gnuplot's standard output.
[[nodiscard]] std::string to_gnuplot(const Plot& plot);

/// Latency by percentile, the axes of HdrHistogram's plotter; add lines with percentile_line().
[[nodiscard]] Plot percentile_plot(std::string title);

/// The curve of one distribution, nanoseconds in, microseconds out.
[[nodiscard]] PlotLine percentile_line(std::string name, const Histogram& values_ns);

}  // namespace lockstep::bench
