#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# usage: tests/faults/torture.sh [--short] [--seed N] BUILD
# Runs every campaign that BUILD has built under tests/faults, and ends with "N passed, N failed" over all cases. A failed
# case prints the command that repeats it. The long form tries all that can be counted, in as many processes as there are
# CPUs, and takes some minutes on many, an hour on two; the short form a part, and two minutes.
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

parts=1
[[ $form == --short ]] || parts=$(nproc)
results=$(mktemp -d)
processes=()
trap 'kill "${processes[@]}" 2>/dev/null || true; rm -rf "$results"' EXIT

passed=0 failed=0
# count NAME FILE STATUS: adds up what one process of a campaign found.
count() {
  local line; line=$(<"$2")
  echo "$line"
  if [[ $line =~ ([0-9]+)\ cases\ passed,\ ([0-9]+)\ failed ]]; then
    passed=$((passed + BASH_REMATCH[1])) failed=$((failed + BASH_REMATCH[2]))
    # A campaign that failed without a failed case has no cases, or did not come to its end.
    [[ $3 -eq 0 || ${BASH_REMATCH[2]} -gt 0 ]] || failed=$((failed + 1))
  else
    echo "$1: ended with status $3 and without a result" >&2
    failed=$((failed + 1))
  fi
}

for name in crash_states crash_steps damage random_faults; do
  processes=()
  for ((part = 1; part <= parts; ++part)); do
    "$build/tests/faults/$name" "$form" --seed "$seed" --part "$part/$parts" >"$results/$part" & processes+=($!)
  done
  for ((part = 1; part <= parts; ++part)); do
    status=0
    wait "${processes[part - 1]}" || status=$?
    count "$name" "$results/$part" "$status"
  done
  processes=()
done
printf '\n%d passed, %d failed\n' "$passed" "$failed"
[[ $failed -eq 0 ]]
