#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""usage: check_cases.py ROOT

Fails when a case T01 to T67 is neither the beginning of a test's name nor in tests/faults/cases.md with a reason, or is
both."""

import pathlib
import re
import sys

ALL = {f"T{n:02}" for n in range(1, 68)}
NUMBERS = re.compile(r'TEST_CASE\(\s*"((?:T\d\d, )*T\d\d): ')

root = pathlib.Path(sys.argv[1])
tested = set()
for folder in ("actors", "base", "journal", "replay", "runtime", "tests"):
    for path in (root / folder).rglob("*_test.cpp"):
        for names in NUMBERS.findall(path.read_text()):
            tested.update(names.split(", "))
listed = set(re.findall(r"^\| (T\d\d) \|", (root / "tests/faults/cases.md").read_text(), re.MULTILINE))

problems = [f"{case}: neither tested nor listed in tests/faults/cases.md" for case in sorted(ALL - tested - listed)]
problems += [f"{case}: tested, and listed as not tested" for case in sorted(tested & listed)]
problems += [f"{case}: no such case" for case in sorted((tested | listed) - ALL)]
print("\n".join(problems) or f"{len(tested)} cases tested, {len(listed)} listed with a reason")
sys.exit(1 if problems else 0)
