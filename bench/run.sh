#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# ./dev bench: builds the benches optimised, in build/bench, and runs them one after the other.
set -euo pipefail
cd "$(dirname "$(readlink -f "$0")")/.."
PATH=/usr/bin:/bin:/usr/sbin:/sbin:$PATH

die() { printf 'dev bench: %s\n' "$*" >&2; exit 1; }

# A bench is a program made from bench/NAME/bench_NAME.cpp, or a script bench/NAME/bench_NAME.py that drives the programs
# its line "# builds: TARGET..." names. Folders have _ where names have -.
known() {
  local source folder
  for source in bench/*/bench_*.cpp bench/*/bench_*.py; do folder=$(basename "$(dirname "$source")"); echo "${folder//_/-}"; done | sort
}

usage() {
  cat <<TXT
usage: ./dev bench [NAME...] [-- OPTION...]
       ./dev bench --list

Builds the benches and runs those named, or all: $(known | paste -sd' '). Options after -- go to each program:
--seconds N bounds its time, --mib N sets the size of the journal (recovery, replay), --help explains. Beside the tables it
prints, a bench leaves its figures (.csv) in build/bench-results/NAME, with distributions (.hgrm) and plots (.svg) where it
makes some. They take the place of those of the run before when the bench has ended well.
On a machine that others use too, have its threads preferred: chrt -f 50 ./dev bench NAME (as root; not for node, whose
disk is served by threads that would starve).
TXT
}

# supervised COMMAND...: runs it, and ends it with this script: a shell that waits for a command in the foreground would
# leave it running. On Ctrl-C too it gets SIGTERM, because what a script starts with & ignores SIGINT.
child=
supervised() {
  "$@" &
  child=$!
  wait "$child"
  child=
}
stop() {
  trap '' HUP INT TERM
  if [[ -n $child ]]; then
    kill -TERM "$child" || true
    wait "$child" || true
  fi
  exit $((128 + $1))
}
trap 'stop 1' HUP
trap 'stop 2' INT
trap 'stop 15' TERM
fresh=
trap '[[ -z $fresh ]] || rm -rf "$fresh"' EXIT

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
  folder=bench/${name//-/_} stem=bench_${name//-/_} results=build/bench-results/$name
  if [[ -f $folder/$stem.py ]]; then
    read -ra targets < <(sed -n 's/^# builds: //p' "$folder/$stem.py")
    run=(python3 "$folder/$stem.py" build/bench)
  else
    targets=("$folder/$stem")
    run=("build/bench/$folder/$stem")
  fi
  supervised ninja -C build/bench "${targets[@]}" >&2
  printf '\n==> %s\n' "$name" >&2
  fresh=$results.new
  rm -rf "$fresh"
  supervised "${run[@]}" --out "$fresh" "$@"
  # --help makes nothing.
  [[ -n $(ls "$fresh" 2>/dev/null) ]] || continue
  for plot in "$fresh"/*.gp; do
    [[ ! -e $plot ]] || gnuplot "$plot" > "${plot%.gp}.svg"
  done
  rm -rf "$results"
  mv "$fresh" "$results"
  printf 'figures are in %s\n' "$results"
done
