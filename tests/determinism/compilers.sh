#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# One journal, captured from a live node, replayed by builds of different compilers and optimisation levels on 1, 2 and 4
# executors, on threads of their own and all on one thread: roots, chain and effects must be the same.
# usage: compilers.sh BUILD-OF-THE-NODE BUILD-WITH-REPLAY_PROBE...
set -euo pipefail
source "$(dirname "$0")/../end_to_end/support.sh"
[[ $# -ge 2 ]] || die "usage: compilers.sh BUILD-OF-THE-NODE BUILD..."

bank=$1/actors/examples/bank/bank; shift
start_node capture "$bank" --data "$work/data"
node=$node_pid
"$bank" bench --connect "$(address capture listen)" --requests 60000 >/dev/null
stop_node "$node"
"$bank" replay verify --data "$work/data" >/dev/null || die "the capturing build does not replay its own journal"

expected=
for build in "$@"; do
  for executors in 1 2 4; do
    for layout in one dedicated; do
      bits=$("$build/tests/determinism/replay_probe" "$work/data" "$executors" "$layout")
      expected=${expected:-$bits}
      [[ $bits == "$expected" ]] || die "$build, $executors executors, $layout: $bits, not $expected"
    done
  done
done
printf 'equal in %d builds: %s\n' "$#" "$expected"
