#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# usage: tests/faults/torture.sh [--short] [--seed N] BUILD
# Runs every campaign that BUILD has built under tests/faults, and ends with "N passed, N failed" over all cases. A failed
# case prints the command that repeats it. The long form tries all that can be counted, and takes half an hour or so; the
# short form a part, and less than a minute.
set -euo pipefail

form=--long seed=1 build=
while [[ $# -gt 0 ]]; do
  case $1 in
    --short) form=--short ;;
    --seed) seed=${2:?--seed wants a number}; shift ;;
    -h | --help) sed -n '3,6s/^# \{0,1\}//p' "$0"; exit ;;
    -*) echo "torture.sh: unknown option $1" >&2; exit 2 ;;
    *) build=$1 ;;
  esac
  shift
done
[[ -d $build/tests/faults ]] || { echo "torture.sh: '$build' is no build directory of lockstep" >&2; exit 2; }

passed=0 failed=0
for name in crash_states crash_steps damage random_faults; do
  status=0
  line=$("$build/tests/faults/$name" "$form" --seed "$seed") || status=$?
  echo "$line"
  if [[ $line =~ ([0-9]+)\ cases\ passed,\ ([0-9]+)\ failed ]]; then
    passed=$((passed + BASH_REMATCH[1])) failed=$((failed + BASH_REMATCH[2]))
    # A campaign that failed without a failed case has no cases, or did not come to its end.
    [[ $status -eq 0 || ${BASH_REMATCH[2]} -gt 0 ]] || failed=$((failed + 1))
  else
    echo "$name: ended with status $status and without a result" >&2
    failed=$((failed + 1))
  fi
done
printf '\n%d passed, %d failed\n' "$passed" "$failed"
[[ $failed -eq 0 ]]
