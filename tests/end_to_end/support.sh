# SPDX-License-Identifier: Apache-2.0
# What the end-to-end scripts share. Source it after `set -euo pipefail`.
# Nodes bind to loopback on ports the kernel chooses, are stopped by pid, and are gone when the script ends.

work=$(mktemp -d "${TMPDIR:-/tmp}/lockstep-XXXXXX")
nodes=()

cleanup() {
  local pid
  for pid in "${nodes[@]:-}"; do
    [[ -n $pid ]] && kill -KILL "$pid" 2>/dev/null && wait "$pid" 2>/dev/null || true
  done
  rm -rf "$work"
}
trap cleanup EXIT

die() { printf 'FAIL: %s\n' "$*" >&2; exit 1; }

# start_node NAME PROGRAM ARGUMENT...: starts `PROGRAM serve` and waits until it is ready. Sets node_pid; its addresses
# are then read with `address NAME listen|resp|admin`.
start_node() {
  local name=$1 program=$2; shift 2
  rm -f "$work/$name.ready"
  "$program" serve --ready-file "$work/$name.ready" --listen 127.0.0.1:0 --admin 127.0.0.1:0 "$@" 2>"$work/$name.log" &
  node_pid=$!
  nodes+=("$node_pid")
  local tries=0
  while [[ ! -s $work/$name.ready ]]; do
    kill -0 "$node_pid" 2>/dev/null || { cat "$work/$name.log" >&2; die "node $name ended before it was ready"; }
    tries=$((tries + 1))
    [[ $tries -lt 1200 ]] || { cat "$work/$name.log" >&2; die "node $name was not ready within 60 s"; }
    sleep 0.05
  done
}

address() { sed -n "s/.*\"$2\": *\"\([^\"]*\)\".*/\1/p" "$work/$1.ready"; }

# stop_node PID: SIGTERM, and a clean exit is required.
stop_node() {
  local status=0
  kill -TERM "$1"
  wait "$1" || status=$?
  [[ $status -eq 0 ]] || die "a node answered SIGTERM with exit status $status"
}

# kill_node PID: SIGKILL.
kill_node() {
  kill -KILL "$1"
  wait "$1" 2>/dev/null || true
}
