#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# One journal, replayed by builds of different compilers and optimisation levels on 1, 2 and 4 executors, on threads of
# their own and all on one thread: roots, chain and effects must be the same. usage: compilers.sh BUILD...
set -euo pipefail
source "$(dirname "$0")/support.sh"
[[ $# -ge 2 ]] || die "usage: compilers.sh BUILD BUILD..."

capture=$1/actors/examples/bank/bank
start_node capture "$capture" --data "$work/data"
node=$node_pid
"$capture" bench --connect "$(address capture listen)" --requests 60000 >/dev/null
stop_node "$node"

expected=
for build in "$@"; do
  for executors in 1 2 4; do
    for layout in one dedicated; do
      result=$("$build/actors/examples/bank/bank" replay verify --data "$work/data" --executors "$executors" \
        --threads "$layout" --json) || die "$build, $executors executors, $layout: $result"
      bits=$(python3 -c 'import json,sys; r=json.load(sys.stdin); print(r["batches"], r["root"], r["effects"], r["chain"])' \
        <<<"$result")
      expected=${expected:-$bits}
      [[ $bits == "$expected" ]] || die "$build, $executors executors, $layout: $bits, not $expected"
    done
  done
done
printf 'equal in %d builds: %s\n' "$#" "$expected"
