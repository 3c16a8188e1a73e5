#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The long form of what the suite does to storage: campaigns over the simulated disk, seeds of a whole simulated node,
# kills and power cuts under real ones. A failure prints the command that repeats it.
# usage: torture.sh BUILD [--short]     called by ./dev torture
set -uo pipefail
build=$1 length=${2:---long}
case $length in
  --short) form=--short seeds=16 kills=4 cuts=6 ;;
  --long) form='' seeds=2000 kills=200 cuts=60 ;;
  *) echo "torture: unknown option $length" >&2; exit 2 ;;
esac
here=$(dirname "$(readlink -f "$0")")
passed=0 failed=0 skipped=0

# attempt TEXT COMMAND...
attempt() {
  local text=$1 started=$SECONDS status=0; shift
  echo "### $text"
  "$@" || status=$?
  case $status in
    0) passed=$((passed + 1)); echo "  ok    $text, $((SECONDS - started)) s" ;;
    77) skipped=$((skipped + 1)); echo "  skip  $text" ;;
    *) failed=$((failed + 1)); echo "  FAIL  $text; again: $*" ;;
  esac
}

attempt "campaigns over a simulated disk" "$here"/faults/torture.sh $form "$build"
attempt "$seeds seeds of a simulated node" env LOCKSTEP_SEEDS=$seeds "$build"/tests/simulation/simulation_test --minimal
kv=$build/actors/examples/kv/kv
adder=$build/tests/end_to_end/poison/poison
attempt "kill -9 under load, $kills times" python3 "$here"/end_to_end/kv_crash_test.py "$kv" $kills
attempt "a file system cut off under load, $cuts times" python3 "$here"/end_to_end/power_cut_test.py "$kv" $cuts
attempt "a full disk" python3 "$here"/end_to_end/full_disk_test.py "$adder"
printf '\n%d passed, %d failed%s\n' $passed $failed "$([[ $skipped -eq 0 ]] || echo ", $skipped skipped")"
[[ $failed -eq 0 ]]
