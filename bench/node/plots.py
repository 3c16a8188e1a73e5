# SPDX-License-Identifier: Apache-2.0
"""The files of bench/support/results.hpp, for a bench in Python: NAME.SERIES.hgrm and NAME.SUBJECT.gp."""

import re
import sys


def quoted(text):
    return "'" + text.replace("'", "''") + "'"


class Plots:
    """A plot without a point, for which gnuplot would fail, is a line on stderr instead."""

    def __init__(self, directory, name):
        self.stem = f"{directory}/{name}"

    def path(self, subject, ending):
        part = re.sub(r"[^a-z0-9]+", "-", subject.lower()).strip("-")
        return f"{self.stem}.{part}.{ending}"

    def distribution(self, series, curve):
        """`curve` has (us, share of all from 0 to 1, count so far)."""
        with open(self.path(series, "hgrm"), "w") as file:
            file.write("       Value     Percentile TotalCount 1/(1-Percentile)\n\n")
            for us, share, count in curve:
                inverse = f" {1 / (1 - share):14.2f}" if share < 1 else ""
                file.write(f"{us:12.3f} {share:.12f} {count:10}{inverse}\n")

    def lines(self, subject, title, x_label, y_label, lines):
        self.write(subject, title, x_label, y_label, lines, "set logscale x 2\n", "linespoints")

    def percentiles(self, subject, title, curves):
        lines = {name: [(1 / (1 - share), us) for us, share, _ in curve if share < 1] for name, curve in curves.items()}
        self.write(subject, title, "percentile", "microseconds", lines,
                   "set logscale xy\nset xtics ('0' 1, '90' 10, '99' 100, '99.9' 1000, '99.99' 10000, '99.999' 100000)\n",
                   "lines")

    def write(self, subject, title, x_label, y_label, lines, settings, style):
        if not any(lines.values()):
            print(f'bench_node: no plot "{title}": it would have no points', file=sys.stderr)
            return
        with open(self.path(subject, "gp"), "w") as file:
            file.write("set terminal svg size 900,520 dynamic noenhanced background rgb 'white'\nset grid\nset key below\n"
                       f"set title {quoted(title)}\nset xlabel {quoted(x_label)}\nset ylabel {quoted(y_label)}\n{settings}")
            for index, points in enumerate(lines.values()):
                file.write(f"$line{index} << EOD\n" + "".join(f"{x:.6g} {y:.6g}\n" for x, y in points) + "EOD\n")
            plots = [f"$line{index} using 1:2 with {style} title {quoted(name)}" for index, name in enumerate(lines)]
            file.write("plot " + ", \\\n    ".join(plots) + "\n")
