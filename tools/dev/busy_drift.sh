#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# usage: bash tools/dev/busy_drift.sh BUILD [BUILD..]
# Counts the cells that drift detection reports while one and two other programs compute, for each build
# in turns. Needs an otherwise idle machine; takes a minute for the table and half a minute per count.
set -u
[ $# -ge 1 ] || { sed -n '3,5s/^# //p' "$0"; exit 2; }
work=$(mktemp -d)
trap 'kill "${burners[@]}" 2>/dev/null; rm -rf "$work"' EXIT
burners=()
export XDG_CACHE_HOME=$work TANDEM_LOG=warn
"$1/mulmat-tune" bench --model quick --type q4_0 --budget 40 --file "$work/table.json" -y >"$work/log" 2>&1 ||
    { cat "$work/log"; exit 1; }
for n in 0 1 2; do
    for ((i = 0; i < n; i++)); do
        nice -n 5 bash -c 'while :; do :; done' &
        burners+=($!)
    done
    for build in "$@"; do
        "$build/tandem-llama" bench --synth quick --prompt 32,128 --gen 32,128 --repeat 4 \
            --table "$work/table.json" >/dev/null 2>"$work/log"
        echo "$build, $n other programs: $(grep -c 'times as long as the table' "$work/log") cells" \
            "blamed, $(grep -c 'is withdrawn' "$work/log") withdrawn"
    done
    [ $n -eq 0 ] || { kill "${burners[@]}"; wait "${burners[@]}" 2>/dev/null; }
    burners=()
done
