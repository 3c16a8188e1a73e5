#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# What torture.sh makes of campaigns that pass, that fail, and that end without a result; the campaigns are stand-ins.
# usage: torture_test.sh
set -euo pipefail
here=$(dirname "$(readlink -f "$0")")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir -p "$work/tests/faults"

# campaign NAME WORDS STATUS: what it prints, and how it ends.
campaign() {
  printf '#!/bin/sh\necho "%s: %s"\nexit %d\n' "$1" "$2" "$3" >"$work/tests/faults/$1"
  chmod +x "$work/tests/faults/$1"
}
# expect STATUS LAST-LINE ARGUMENT...
expect() {
  local wanted=$1 line=$2 status=0 out; shift 2
  out=$("$here/torture.sh" "$@" 2>&1) || status=$?
  [[ $status -eq $wanted && ${out##*$'\n'} == "$line" ]] ||
    { printf 'torture.sh %s: status %d, not %d, and\n%s\nwhere the last line should be: %s\n' "$*" "$status" "$wanted" "$out" "$line"; exit 1; }
}

for name in crash_states crash_steps damage random_faults; do campaign $name '10 cases passed, 0 failed' 0; done
expect 0 '40 passed, 0 failed' --short "$work"
expect 0 "$((40 * $(nproc))) passed, 0 failed" "$work"
campaign damage '9 cases passed, 1 failed' 1
expect 1 '39 passed, 1 failed' --short "$work"
campaign damage 'killed' 137
expect 1 '30 passed, 1 failed' --short "$work"
expect 2 "torture.sh: '$work/none' is no build directory of lockstep" --short "$work/none"
