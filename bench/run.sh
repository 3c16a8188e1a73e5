#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# ./dev bench: builds the benches optimised, in build/bench, and runs them one after the other.
set -euo pipefail
cd "$(dirname "$(readlink -f "$0")")/.."
PATH=/usr/bin:/bin:/usr/sbin:/sbin:$PATH

die() { printf 'dev bench: %s\n' "$*" >&2; exit 1; }

# A bench is a program made from bench/NAME/bench_NAME.cpp, or a script bench/NAME/bench_NAME.py that drives programs.
known() { local source; for source in bench/*/bench_*.cpp bench/*/bench_*.py; do basename "$(dirname "$source")"; done | sort; }

usage() {
  cat <<TXT
usage: ./dev bench [NAME...] [-- OPTION...]
       ./dev bench --list

Builds the benches and runs those named, or all: $(known | paste -sd' '). Options after -- go to each program:
--seconds N bounds its time, --mib N sets the size of recovery's journal, --csv FILE writes the figures, --help explains.
On a machine that others use too, have its threads preferred: chrt -f 50 ./dev bench NAME (as root).
TXT
}

names=()
while [[ $# -gt 0 ]]; do
  case $1 in
    --help | -h) usage; exit ;;
    --list) known; exit ;;
    --) shift; break ;;
    -*) die "unknown option $1 (see ./dev bench --help)" ;;
    *) known | grep -qx -- "$1" || die "no bench is named $1; there are: $(known | paste -sd' ')"; names+=("$1"); shift ;;
  esac
done
[[ ${#names[@]} -gt 0 ]] || mapfile -t names < <(known)

[[ -f build/bench/build.ninja ]] || meson setup build/bench --buildtype=release -Dbench=true >&2
for name in "${names[@]}"; do
  if [[ -f bench/$name/bench_$name.py ]]; then program=actors/examples/kv/kv; else program=bench/$name/bench_$name; fi
  ninja -C build/bench "$program" >&2
  printf '\n==> %s\n' "$name" >&2
  if [[ -f bench/$name/bench_$name.py ]]; then
    python3 "bench/$name/bench_$name.py" "build/bench/$program" "$@"
  else
    "build/bench/$program" "$@"
  fi
done
