// SPDX-License-Identifier: Apache-2.0
#include "bench/support/plot.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>

namespace lockstep::bench {

namespace {

/// A string for gnuplot: single quotes, in which only the quote itself is special.
std::string quoted(const std::string& text) {
  std::string result = "'";
  for (const char each : text) {
    result += each;
    if (each == '\'') result += each;
  }
  result += '\'';
  return result;
}

}  // namespace

bool has_points(const Plot& plot) {
  return std::ranges::any_of(plot.lines, [&](const PlotLine& line) {
    return std::ranges::any_of(line.points, [&](const auto& point) {
      return (!plot.logarithmic_x || point.first > 0) && (!plot.logarithmic_y || point.second > 0);
    });
  });
}

std::string to_gnuplot(const Plot& plot) {
  std::string script =
      "set terminal svg size 900,520 dynamic noenhanced background rgb 'white'\nset grid\nset key below\n";
  auto out = std::back_inserter(script);
  fmt::format_to(out, "set title {}\nset xlabel {}\nset ylabel {}\n", quoted(plot.title), quoted(plot.x_label),
                 quoted(plot.y_label));
  if (plot.logarithmic_x) fmt::format_to(out, "set logscale x\n");
  if (plot.logarithmic_y) fmt::format_to(out, "set logscale y\n");
  if (plot.percentiles) {
    fmt::format_to(out, "set xtics ('0' 1, '90' 10, '99' 100, '99.9' 1000, '99.99' 10000, '99.999' 100000)\n");
  }
  for (std::size_t i = 0; i < plot.lines.size(); ++i) {
    fmt::format_to(out, "$line{} << EOD\n", i);
    for (const auto& [x, y] : plot.lines[i].points) fmt::format_to(out, "{:.6g} {:.6g}\n", x, y);
    fmt::format_to(out, "EOD\n");
  }
  for (std::size_t i = 0; i < plot.lines.size(); ++i) {
    const bool bare = plot.percentiles || plot.lines[i].fitted;
    fmt::format_to(out, "{} $line{} using 1:2 with {} title {}", i == 0 ? "plot" : ", \\\n    ", i,
                   bare ? "lines" : "linespoints", quoted(plot.lines[i].name));
  }
  script += '\n';
  return script;
}

Plot percentile_plot(std::string title) {
  return {.title = std::move(title),
          .x_label = "percentile",
          .y_label = "microseconds",
          .logarithmic_x = true,
          .logarithmic_y = true,
          .lines = {},
          .percentiles = true};
}

PlotLine percentile_line(std::string name, const Histogram& values_ns) {
  PlotLine line{.name = std::move(name), .points = {}};
  if (values_ns.count() == 0) return line;
  // Ten points to each factor of ten, as far as there are values: a percentile nobody reached is not drawn.
  const double farthest = static_cast<double>(values_ns.count());
  for (double x = 1; x <= farthest; x *= std::pow(10.0, 0.1)) {
    line.points.emplace_back(x, static_cast<double>(values_ns.percentile(100 * (1 - 1 / x))) / 1000);
  }
  return line;
}

}  // namespace lockstep::bench
