#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The bank on one node: load, replay on 1, 2 and 4 executors, and two live nodes compared. Called by ./dev demo.
set -euo pipefail
source "$(dirname "$0")/support.sh"
build=$1; shift
requests=1000000
while [[ $# -gt 0 ]]; do
  case $1 in
    --requests)
      requests=${2:-}; shift; shift || true
      [[ $requests =~ ^[1-9][0-9]+$ ]] || die "--requests is a number of at least 10, not '$requests'" ;;
    *) die "unknown option $1 (see ./dev demo --help)" ;;
  esac
done
bank=$build/actors/examples/bank/bank
lockstep=$build/replay/lockstep
step() { printf '\n\033[1m%s\033[0m\n' "$*"; }

step "1. A node serves the bank (journal on disk, a reply only after fdatasync)"
start_node first "$bank" --data "$work/first"
first=$node_pid
printf 'native %s, admin %s, data %s\n' "$(address first listen)" "$(address first admin)" "$work/first"

step "2. $requests requests: deposits, withdrawals, and transfers between branches on different shards"
echo "as fast as answers come, 90 % of them:"
"$bank" bench --connect "$(address first listen)" --requests $((requests * 9 / 10))
echo "at a planned rate, latency counted from the plan:"
"$bank" bench --connect "$(address first listen)" --requests $((requests / 10)) --rate 20000 --depth 1024

step "3. The state it reached, as it says itself"
"$lockstep" hash show "$(address first admin)"

step "4. Stop it, and run its journal again on 1, 2 and 4 executors"
stop_node "$first"
"$lockstep" journal info "$work/first"
for executors in 1 2 4; do
  "$bank" replay verify --data "$work/first" --executors "$executors"
done

step "5. A second node from a copy of the journal, beside the first; compare their hashes live"
cp -r "$work/first" "$work/second"
start_node first "$bank" --data "$work/first"
first=$node_pid
start_node second "$bank" --data "$work/second"
second=$node_pid
"$lockstep" hash compare "$(address first admin)" "$(address second admin)"
stop_node "$first"
stop_node "$second"

step "Same journal, same bits: roots, chain and effects are equal on 1, 2 and 4 executors and on both nodes."
