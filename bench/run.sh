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
prints, a bench leaves its figures (.csv), distributions (.hgrm) and plots (.svg) in build/bench-results/NAME.
On a machine that others use too, have its threads preferred: chrt -f 50 ./dev bench NAME (as root; not for node, whose
disk is served by threads that would starve).
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
  folder=bench/${name//-/_} stem=bench_${name//-/_} results=build/bench-results/$name
  rm -rf "$results"
  if [[ -f $folder/$stem.py ]]; then
    read -ra targets < <(sed -n 's/^# builds: //p' "$folder/$stem.py")
    run=(python3 "$folder/$stem.py" build/bench)
  else
    targets=("$folder/$stem")
    run=("build/bench/$folder/$stem")
  fi
  ninja -C build/bench "${targets[@]}" >&2
  printf '\n==> %s\n' "$name" >&2
  "${run[@]}" --out "$results" "$@"
  for plot in "$results"/*.gp; do
    [[ ! -e $plot ]] || gnuplot "$plot" > "${plot%.gp}.svg"
  done
  printf 'figures and plots are in %s\n' "$results"
done
