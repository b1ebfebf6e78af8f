#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# usage: cover.sh BUILD      Line coverage by room from the counters of a run (make cover).
set -u
cd "$(dirname "$0")/../.."
build=$1
find "$build/obj" -name '*.gcno' -not -path '*/tests/*' | sort | while read -r counters; do
    source=${counters#"$build"/obj/}
    gcov -n -o "$(dirname "$counters")" "$counters" 2>/dev/null |
        awk -v want="${source%.gcno}.c" '
            /^File/ { hit = index($0, "\047" want "\047") }
            /^Lines executed/ && hit {
                split($0, part, /[:% ]+/)
                printf "%s %s %s\n", want, part[3], $NF; hit = 0
            }'
done | awk '
    { room = $1; sub(/\/.*/, "", room); lines[room] += $3; run[room] += $2 * $3 / 100
      printf "  %-44s %6.1f %% of %5d lines\n", $1, $2, $3 }
    END { for (room in lines)
        printf "%-46s %6.1f %% of %5d lines\n", room, 100 * run[room] / lines[room], lines[room] }'
